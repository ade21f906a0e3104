# The door: each target is one line that calls its program in ci/, which works without make as well.
# What follows ## is what `make help` prints. TREE, KERNEL, ARCH and DEBUG go on to the programs, as does all else that is set.
.PHONY: help fetch apply export image boot kunit selftests bench shell lint pristine prefixes check check-full demo clean
.NOTPARALLEL:
unexport MAKEFLAGS MAKELEVEL	# the kernel's own make is not a part of this one

help: ## this list; variables: TREE=7.3|6.12|6.1 KERNEL=patched|base|<reference> ARCH=arm64 DEBUG='set ...'
	@sed -n 's/^\([a-z-]*\):.* ## /\1	/p' Makefile | expand -t 12

fetch: ## bring the source of TREE and import it into git
	@ci/fetch

apply: ## put patches/ on a branch with git am; with a worktree to edit: ci/apply --edit
	@ci/apply

export: ## write patches/ and series/ again from the branch
	@ci/export

image: ## build KERNEL; the last line is the path of the image
	@ci/image

boot: ## boot KERNEL and run tests: RUN='f2fs_remount,storm,200 ...' DISKS='file ...' (see ci/boot)
	@: $${RUN:?is what to run in the guest, as RUN=kunit} && image=$$(ci/image) && ci/boot boot "$$image" -- $$RUN

kunit: ## run the KUnit tests of KERNEL in the guest
	@ci/kunit

selftests: ## run the black-box tests of selftests/ on KERNEL
	@ci/selftests

bench: ## count what a read costs: reference, base, patched
	@ci/bench

shell: ## a prompt in KERNEL, with the test disks mounted
	@ci/shell

lint: ## what can be said of patches and scripts without building
	@ci/lint

pristine: ## do the files that the patches touch carry patches of the distribution
	@ci/pristine

prefixes: ## build after each patch of the series: W=1 and sparse, no new warning
	@ci/prefixes

check: ## all that is run for every change
	@ci/check

check-full: ## the same on all trees, debug sets and kinds
	@ci/check-full

demo: ## from nothing to the table of what the series changed
	@ci/demo

clean: ## remove what builds made; downloads and trees too: ci/clean all
	@ci/clean
