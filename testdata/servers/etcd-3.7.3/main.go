// Command etcd-3.7.3 is the etcd server 3.7.3. TEST_SEGMENT_BYTES sets the size of its WAL segments, which etcd has no
// flag for, so that tests get purged logs.
package main

import (
	"os"
	"strconv"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

func main() {
	if n, err := strconv.ParseInt(os.Getenv("TEST_SEGMENT_BYTES"), 10, 64); err == nil && n > 0 {
		wal.SegmentSizeBytes = n
	}
	etcdmain.Main(os.Args)
}
