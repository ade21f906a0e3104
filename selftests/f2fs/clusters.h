/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compressed clusters as they lie on the disk: found with FIEMAP, read from and written to the bare disk.
 *
 * A cluster on the disk is a header (length and checksum of the compressed data, reserved words), the compressed data,
 * and zeroes up to the end of the block. F2FS reports its blocks as extents that are encoded, the last of them longer
 * than it is by the blocks that were saved.
 */
#ifndef CLUSTERS_H
#define CLUSTERS_H

#include "../steady.h"
#include <endian.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#define F2FS_IOC_GET_COMPRESS_BLOCKS	_IOR(0xf5, 17, uint64_t)
#define F2FS_IOC_GET_COMPRESS_OPTION	_IOR(0xf5, 21, uint8_t[2])	/* algorithm, log2 of pages a cluster */

#define ZSTD		2	/* as an algorithm */
#define BLOCK		4096
#define HEADER		24
#define MAX_BLOCKS	256
#define MAX_EXTENTS	16384

struct cluster {
	unsigned int clen, blocks;
	off_t where[MAX_BLOCKS];
	char data[MAX_BLOCKS * BLOCK] __attribute__((aligned(BLOCK)));
};

struct extents {
	struct fiemap head;
	struct fiemap_extent list[MAX_EXTENTS];
};

static inline uint32_t le32_at(const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

/* The size of the clusters of @fd, in bytes, and if @algorithm is given, the number of that. */
static inline size_t cluster_size(int fd, int *algorithm)
{
	uint8_t option[2];

	must(!ioctl(fd, F2FS_IOC_GET_COMPRESS_OPTION, option), "cannot ask for the cluster size\n");
	if (algorithm)
		*algorithm = option[0];
	return (size_t)BLOCK << option[1];
}

static inline void get_extents(int fd, struct extents *map)
{
	memset(&map->head, 0, sizeof(map->head));
	map->head.fm_length = FIEMAP_MAX_OFFSET;
	map->head.fm_extent_count = MAX_EXTENTS;
	must(!ioctl(fd, FS_IOC_FIEMAP, map), "cannot ask for the extents\n");
	must(map->head.fm_mapped_extents < MAX_EXTENTS, "there are too many extents\n");
}

/* Get the cluster of @size bytes at @at from @disk, opened with O_DIRECT. Returns false if it is not a compressed one. */
static inline bool read_cluster(int disk, const struct extents *map, off_t at, size_t size, struct cluster *c)
{
	unsigned int i, n = 1;
	uint64_t in;

	c->blocks = 0;
	for (i = 0; i < map->head.fm_mapped_extents && c->blocks < n; i++) {
		const struct fiemap_extent *e = &map->list[i];

		if (!(e->fe_flags & FIEMAP_EXTENT_ENCODED) || e->fe_logical < (uint64_t)at || e->fe_logical >= at + size)
			continue;
		for (in = 0; in < e->fe_length && c->blocks < n; in += BLOCK, c->blocks++) {
			char *to = c->data + c->blocks * BLOCK;

			c->where[c->blocks] = e->fe_physical + in;
			must(pread(disk, to, BLOCK, e->fe_physical + in) == BLOCK, "cannot read the disk\n");
			if (c->blocks)
				continue;
			c->clen = le32_at(c->data);
			n = (c->clen + HEADER + BLOCK - 1) / BLOCK;
			must(c->clen && n < size / BLOCK, "the cluster at %jd has %u bytes\n", (intmax_t)at, c->clen);
		}
	}
	must(!c->blocks || c->blocks == n, "the cluster at %jd has %u blocks, not %u\n", (intmax_t)at, c->blocks, n);
	return c->blocks;
}

static inline void write_cluster(int disk, const struct cluster *c)
{
	unsigned int i;

	for (i = 0; i < c->blocks; i++)
		must(pwrite(disk, c->data + i * BLOCK, BLOCK, c->where[i]) == BLOCK, "cannot write to the disk\n");
}

#endif
