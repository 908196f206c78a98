// Package dumpdb reads the bbolt file of an etcd member (member/snap/db, *.snap.db, or a file written by snapshot save)
// of etcd 3.3 to 3.8, intact, damaged or hostile. It never writes to the file, and damage never crashes it.
//
// # File
//
// A bbolt file (go.etcd.io/bbolt internal/common) is an array of pages, little endian. The page size is in the meta
// pages. bbolt uses the page size of the host, which is 4096 on most machines and up to 65536 on some.
//
//	page header  16 B: id u64 | flags u16 (1 branch, 2 leaf, 4 meta, 16 freelist) | count u16 | overflow u32
//	meta (after header): magic 0xED0CDAED u32 | version 2 u32 | page size u32 | flags u32 | root page u64 | root sequence u64 |
//	                     freelist page u64 (all ones: not stored) | high-water mark u64 | txid u64 | FNV-1a-64 of the 56 bytes before
//	branch element: pos u32 | key size u32 | child page u64
//	leaf element  : flags u32 (1: the value is a bucket) | pos u32 | key size u32 | value size u32
//	bucket value  : root page u64 | sequence u64 | a whole leaf page if root is 0 (inline bucket)
//
// pos counts from the element itself. A page with overflow n owns the n page ids after its own and is read with them as
// one run. Keys and values follow the element table in element order without gaps. Pages 0 and 1 are meta pages:
// transaction n writes page n mod 2, and a reader uses the valid one with the higher txid. The other is the state one
// transaction earlier. It stays readable until its pages are reused. Pages have no checksum, so only their structure
// shows damage, and a changed byte inside a value cannot be detected here.
//
// etcd 3.3+ keeps no freelist on Linux (backend option NoFreelistSync): unreachable pages are then free. If a freelist
// is stored, a page neither reachable nor listed is lost. The file may be longer than the high-water mark, since bbolt
// grows it in steps, but never shorter. snapshot save appends 32 bytes of sha256, so that the size modulo 512 is 32.
//
// # Buckets
//
// All buckets are top-level (server/storage/schema/bucket.go; before 3.6 server/mvcc, before 3.5 mvcc). Numbers are big
// endian.
//
//	key             main u64 | '_' | sub u64 [| 't' on a tombstone] -> mvccpb.KeyValue; a tombstone has only the key
//	meta            consistent_index u64, term u64 (3.5+), confState JSON (3.5+), scheduledCompactRev and finishedCompactRev
//	                (17 byte revision), storageVersion text (3.6+)
//	lease           ID u64 -> leasepb.Lease; the TTL is raised to a minimum that depends on the member's election ticks
//	alarm           etcdserverpb.AlarmMember -> empty
//	auth            authEnabled one byte, authRevision u64
//	authUsers       name -> authpb.User; up to 3.4 each member adds its own salt
//	authRoles       name -> authpb.Role
//	members         hex ID -> JSON; members_removed: hex ID -> "removed"
//	cluster         clusterVersion text, downgrade JSON (3.5+)
//
// consistent_index is the raft index of the last applied entry known to be in the file. Up to 3.4 only MVCC writes, and
// from 3.3.21 and 3.4.8 auth writes, store it; from 3.5 each commit of the backend does.
//
// # MVCC
//
// Records in key are ordered by revision. Main revisions are contiguous above the compact revision, which is the larger
// of the scheduled and the finished one. The current revision is the last main revision, but never below either mark.
// Records at or below the compact revision are the newest of their key at that revision, plus leftovers of an
// interrupted compaction, plus (3.4.34+, 3.5.16+, 3.6+) a tombstone exactly at it. restore --bump-revision leaves one
// record with an empty value far above its predecessor, with the scheduled compact revision equal to it.
//
// # Reading
//
// Every byte is read by pread into bounded buffers. A file that shrinks or is inconsistent gives a [DamageError], never
// a crash. Iterators yield damage between the rows and continue with the next readable page.
package dumpdb
