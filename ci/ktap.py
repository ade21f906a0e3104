# SPDX-License-Identifier: GPL-2.0
"""Read nested KTAP, in the forms of KUnit, kselftest and selftests/init.c."""
import re

RESULT = re.compile(r"(not ok|ok) (\d+)(?: -)? ?(.*?)(?: ?# +(?:((?i:SKIP|XFAIL|XPASS|TODO|TIMEOUT|ERROR))\b *)?(.*))?$")
HEAD = re.compile(r"(?:K?TAP version \d+|1\.\.(?P<plan>\d+).*|# Subtest: (?P<name>.*))$")
HINT = re.compile(r"(?!.*(?:pass:\d+ |Planned tests|skipped test))(?:# )?(.*)")


class Level:
    """The tests of one indentation, and the levels inside the test to come."""
    def __init__(self, indent):
        self.indent, self.name, self.plan, self.hint, self.tests, self.inner = indent, "", None, "", [], []

    def short(self, depth):
        """What the plan lacks; only below a suite (KUnit's parameters) there may be none, but it must count from 1."""
        if self.plan is None and depth < 3:
            return "no plan"
        plan = len(self.tests) if self.plan is None else self.plan
        if [test.number for test in self.tests] == list(range(1, plan + 1)):
            return ""
        return "%d of %d results" % (len(self.tests), plan) if len(self.tests) != plan else "results not numbered 1 to %d" % plan


class Test:
    def __init__(self, match, level):
        ok, number, name, directive, why = (text or "" for text in match.groups())
        if not name:    # kselftest's form: ok 1 # SKIP name
            name, why = why or number, ""
        self.number, self.name, self.timed_out, self.levels = int(number), name.strip(), directive.upper() == "TIMEOUT", level.inner
        self.status = "failed" if ok != "ok" else "skipped" if directive else "passed"
        self.why = "" if self.status == "passed" else why or "; ".join(filter(None, [level.hint] + [x.hint for x in level.inner]))
        level.inner, level.hint = [], ""


class Report:
    def __init__(self, lines):
        self.leaves, self.short, self.empty, self.timed_out, self.ended = [], [], [], [], False
        stack = [Level(0)]
        for line in lines:
            text, indent = line.strip(), len(line) - len(line.lstrip(" "))
            result, head = RESULT.match(text), HEAD.match(text)
            if not result and not head:
                self.ended |= line == "# steadyread: end"
                if re.match(r"# |Bail out!", text) and HINT.match(text):
                    next(level for level in reversed(stack) if level.indent <= indent).hint = HINT.match(text)[1]
                continue
            while stack[-1].indent > indent:
                inner = stack.pop()
                stack[-1].inner.append(inner)
            if stack[-1].indent < indent:
                stack.append(Level(indent))
            level = stack[-1]
            if result:
                level.tests.append(Test(result, level))
            elif head["name"]:
                level.name = head["name"]
            elif head["plan"]:
                level.plan = (level.plan or 0) + int(head["plan"])
        self.running = ".".join(level.name for level in stack if level.name)
        if stack[0].short(0):
            self.short.append(stack[0].short(0))
        path = ""
        for depth, level in enumerate(stack):   # those below the first belong to a test that did not end
            path += level.name and level.name + "."
            self.walk(level, path, depth)

    def walk(self, level, path, depth):
        """Add the tests inside the level to the report; true if one of them failed. At depth 0 they are programs."""
        failed = False
        for test in level.tests:
            name = path + test.name
            inner_failed = any([self.walk(inner, name + ".", depth + 1) for inner in test.levels])
            parent = any(inner.tests for inner in test.levels)
            for inner in test.levels if test.status != "skipped" else []:
                if (inner.tests or inner.plan) and inner.short(depth + 1):
                    self.short.append(name + ": " + inner.short(depth + 1) + (test.why and " (%s)" % test.why))
            empty = test.status == "passed" and not parent and (test.levels or depth == 0)
            if test.timed_out:
                self.timed_out.append(name + " " + test.why)
            if empty:
                self.empty.append(name)
            elif not parent or test.status == "skipped" or (test.status == "failed" and not inner_failed):
                self.leaves.append((test.status, name, test.why))
            failed |= inner_failed or test.status == "failed"
        return failed
