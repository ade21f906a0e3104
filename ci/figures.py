"""What the benchmarks counted (ci/bench), read from a file of lines "kernel<TAB>benchmark.what<TAB>number".

The whats are those of selftests/f2fs/f2fs_bench.c and selftests/erofs/erofs_bench.c; if one of them is clusters, the figures
are a cluster. A what that was measured more than once has all its values.
"""
import sys


def load(path):
    """{benchmark: {kernel: {what: [values]}}}, in the order of the file."""
    totals = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            kernel, metric, number = line.rstrip("\n").split("\t")
            bench, what = metric.split(".")
            totals.setdefault(bench, {}).setdefault(kernel, {}).setdefault(what, []).append(int(number))
    if not totals:
        sys.exit(f"{sys.argv[0]}: error: {path} has no figures")
    return {b: {k: per_cluster(m) if "clusters" in m else m for k, m in by_kernel.items()} for b, by_kernel in totals.items()}


def per_cluster(metrics):
    clusters = metrics["clusters"][0]
    figures = {what: [v / clusters for v in values] for what, values in metrics.items()}
    figures["outside"] = [n - figures["decoder"][0] for n in figures["instructions"]]
    figures["maps"] = [figures["maps_raw"][0] + figures["maps_compressed"][0]]
    figures["unmapped"] = [100 * (1 - figures["maps"][0] / 2)]
    return figures
