// Package dumplog reads what an etcd member wrote about its raft log: the write-ahead log (WAL) and the raft snapshot
// files, of etcd 3.0 to 3.8, intact or damaged. It opens files for reading only, needs no etcd code, keeps memory
// constant and never panics on what it reads.
//
// # Segments
//
// A WAL folder contains segments named %016x-%016x.wal: sequence number and the first raft index it may contain
// (server/storage/wal/util.go). A segment is preallocated with 64,000,000 bytes of zeros, cut to its real size when the
// next one starts, and has no header:
//
//	offset   size  frame
//	0        8     length word, little endian
//	               bits 0..55   n, the size of the record
//	               bits 56..58  padding, bit 63 set if there is any
//	8        n     walpb.Record {1 type, 2 crc, 3 data}
//	8+n      0..7  padding, zeros, so that every frame is a multiple of 8
//
// A length word of 0, or the end of the file at a frame border, ends a segment.
//
// # Records
//
//	1 metadata  etcdserverpb.Metadata {1 NodeID, 2 ClusterID}, the same in every segment
//	2 entry     raftpb.Entry {1 Type, 2 Term, 3 Index, 4 Data}; 3.7 leaves out a Type of 0
//	3 state     raftpb.HardState {1 term, 2 vote, 3 commit}, each time one of them changes
//	4 crc       no data; at the head of a segment, the CRC that the previous segment ended with
//	5 snapshot  walpb.Snapshot {1 index, 2 term, 3 conf_state (3.5 and later)}
//
// A segment starts with crc and metadata. In the first segment of a log snapshot 0/0 follows, in later ones the last
// state. The crc field is a rolling CRC-32C over the data of all records since the start of the log. It does not cover
// the type, the length word or itself, so this package also checks whether the data fits the type.
//
// # The effective log
//
// An entry whose index is not above the last one replaces that index and all later ones: a new leader overwrote what
// was not committed. The index jumps only where a leader sent a snapshot, as a snapshot record shows. The commit index
// of the last HardState lags, since etcd does not sync the log for it alone.
//
// The start of a log shows how the member was created (StartKind). A bootstrap writes one ConfChangeAddNode per initial
// member at term 1, then HardState{term 1, vote 0, commit n}. A restore does the same with a vote. A joining member has
// its HardState first. --force-new-cluster appends removals without ID and context (Summary.ForceNewCluster).
//
// # Damage
//
// Damage is a fact about the data. Iterators yield it as a DamageError between the records and then continue. It says
// which bytes and which indexes are lost, and how etcd reacts. After damage, the next frame is searched at 8-byte
// steps. Its neighbor must confirm it: the CRC stored in the next record must be the CRC of this one, continued over
// the next one's data. If the CRC of a record does not match, the chain continues from its stored CRC, so only this
// record is reported.
//
// # Requests
//
// The data of a normal entry is empty (a leader's first of its term), an InternalRaftRequest, or, from proposers up to
// 3.5, a raw v2 Request; that of a conf change is raftpb.ConfChange with a JSON context. The header ID of a request
// holds the low 16 bits of the proposer's member ID, the low 40 bits of the start of its process in milliseconds, and a
// counter (pkg/idutil/id.go); see RequestID and Lives.
//
// # Raft snapshot files
//
// A file %016x-%016x.snap (term, index) is snappb.Snapshot {1 crc, 2 data} around raftpb.Snapshot, whose data is the v2
// store as JSON: members, removed members, cluster version and v2 keys (server/etcdserver/api/snap/snapshotter.go). 3.6
// and later derive it from the v3 members; 3.7 writes it but does not read it. A file %016x.snap.db (index) is a
// database received from a leader and not installed yet.
package dumplog
