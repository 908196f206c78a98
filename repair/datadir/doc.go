// Package datadir writes new etcd data dirs, databases and backup files. It never writes to its input. Every result is
// a new path, built under PATH.partial, synced and then renamed. So a crash, an error or a full disk leaves nothing
// under the final name.
//
// # Data dir
//
// Write creates the data dir of a member that has just received a leader's snapshot, or that was restored from a
// backup:
//
//	member/wal/0000000000000000-0000000000000000.wal
//	    crc 0, metadata, snapshot 0/0, entries up to Index (restores only), state, snapshot Term/Index, later entries, state
//	member/snap/<term>-<index>.snap   raft snapshot: ConfState and the members as JSON of the v2 store
//	member/snap/db                    the database, with consistent_index at Index
//
// All versions of etcd from 3.3 to 3.8 open it. They read the same facts from different places
// (server/etcdserver/bootstrap.go, before 3.5 etcdserver/server.go):
//
//	             member IDs     members and URLs               raft voters
//	3.3, 3.4     WAL metadata   .snap                          .snap
//	3.5          WAL metadata   .snap (3.5.0: members bucket)  .snap
//	3.6          WAL metadata   members bucket                 .snap
//	3.7, 3.8     WAL metadata   members bucket                 members bucket; the WAL's snapshot record names the index
//
// So all three places are written and agree. A snapshot record has the ConfState since 3.5; older servers skip the
// field. Servers use a .snap only if the WAL has a record of it at or below the commit index of the last HardState
// (3.3.21+, 3.4.8+, 3.5+), and the database must be at Index or later.
//
// # Frames and checksums
//
// Records are walpb.Record{1 type, 2 crc, 3 data} in frames of a little-endian length word, the record, and zeros up to
// a multiple of 8. The crc is a rolling CRC-32C over the data of all records (server/storage/wal/encoder.go). A .snap
// file is snappb.Snapshot{1 crc, 2 data} around raftpb.Snapshot (server/etcdserver/api/snap/snapshotter.go). A backup
// is the database followed by the sha256 of all its bytes (etcdserver/v3rpc/maintenance.go, 3.1+).
package datadir
