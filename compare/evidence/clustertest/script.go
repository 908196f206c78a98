package clustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Script describes a cluster's history entry by entry. Write creates its data dirs. Every member has the whole log and
// a database with the effects of the entries, except for the steps that a member skips. It creates states that no
// current server can reach, such as a cluster of 3.2 and 3.3.
type Script struct {
	Members int
	// Version is the cluster version, such as "3.4.0". It decides which keys bucket meta has.
	Version string
	// Of are the differences of a member, by position.
	Of map[int]ScriptMember
	// Purged, if set, is the number of the step up to which a raft snapshot covers the log. The segments up to there
	// are removed, as on servers that have run for long. It requires small segments (wal.SegmentSizeBytes).
	Purged int
	steps  []Step
	lives  map[int]int
	revs   uint64
}

// ScriptMember is how one member differs.
type ScriptMember struct {
	// MinTTL is the lowest TTL that the member grants. Persists says whether it stores remaining TTLs. KeepsTombstone
	// says whether its compaction keeps a tombstone exactly at the compact revision.
	MinTTL                   int64
	Persists, KeepsTombstone bool
	// LogUntil, if set, is the number of the last step in the member's log. SnapshotAt is the step to which a snapshot
	// from the leader brought it afterwards.
	LogUntil, SnapshotAt int
	// KeepsLog is true for a member that did not purge its log where the others did.
	KeepsLog bool
	// FallsBack is the number of the step after which the member used the revision of its newest record as the current
	// one.
	FallsBack int
	// AppliedUntil, if set, is the number of the last step in its database, IndexAt the step that its consistent index
	// names instead. SnapshotTaken is the step after which it took its own raft snapshot.
	AppliedUntil, IndexAt, SnapshotTaken int
	// RevokesAlone are leases that the member revokes without an entry, by the step after which it does.
	RevokesAlone map[int]int64
	// Repeats are ranges of steps that the member executed a second time.
	Repeats []ScriptRepeat
	// Votes are the positions of the members that it voted for, by term; node1 by default.
	Votes map[uint64]int
}

// ScriptRepeat is a range of steps, From to To, that a restart executed again before the step Before.
type ScriptRepeat struct{ From, To, Before int }

// Step is one entry of the log.
type Step struct {
	// By is the position of the proposer, User the name in the header.
	By   int
	User string
	// Term is the term of the entry; 0 keeps that of the previous step. Empty is a leader's first entry.
	Term  uint64
	Empty bool
	// AuthRevision is the auth revision in the header, with a user; 0 means the right one.
	AuthRevision uint64
	Req          *etcdserverpb.InternalRaftRequest
	// Skip lists the positions of members on which the entry had no effect.
	Skip []int
	// Cut is how many operations of a transaction took effect, by position of the member.
	Cut map[int]int
}

// Add appends a step and returns its number, counted from 1.
func (s *Script) Add(st Step) int {
	if st.Term == 0 {
		st.Term = 2
		if n := len(s.steps); n > 0 {
			st.Term = s.steps[n-1].Term
		}
	}
	if raisesAuth(st.Req) {
		s.revs++
	}
	if st.User != "" && st.AuthRevision == 0 {
		st.AuthRevision = 1 + s.revs
	}
	if !st.Empty {
		if s.lives == nil {
			s.lives = map[int]int{}
		}
		if st.Req.ClusterMemberAttrSet != nil {
			s.lives[st.By]++
		}
		life := uint64(1763000000000+1000*s.lives[st.By]) & (1<<40 - 1)
		req := *st.Req // tests that run in parallel may share it
		st.Req = &req
		id := uint64(synthMember+st.By)<<48 | (life<<8 + uint64(len(s.steps)&0x7f))
		st.Req.Header = &etcdserverpb.RequestHeader{ID: id, Username: st.User, AuthRevision: st.AuthRevision}
	}
	s.steps = append(s.steps, st)
	return len(s.steps)
}

// Start adds the entry that a member publishes after a start.
func (s *Script) Start(member int) int {
	set := &membershippb.ClusterMemberAttrSetRequest{
		Member_ID: uint64(synthMember + member),
		MemberAttributes: &membershippb.Attributes{Name: fmt.Sprintf("node%d", member+1),
			ClientUrls: []string{fmt.Sprintf("http://127.0.0.1:%d", 2379+2*member)}}}
	return s.Add(Step{By: member, Req: &etcdserverpb.InternalRaftRequest{ClusterMemberAttrSet: set}})
}

// Index returns the raft index of a step.
func (s *Script) Index(step int) uint64 { return uint64(s.Members + step) }

// ID returns the member ID of a position.
func (s *Script) ID(member int) uint64 { return uint64(synthMember + member) }

// raisesAuth reports whether the request increments the auth revision if it succeeds.
func raisesAuth(r *etcdserverpb.InternalRaftRequest) bool {
	return r != nil && (r.AuthDisable != nil || r.AuthUserAdd != nil || r.AuthUserChangePassword != nil ||
		r.AuthUserGrantRole != nil || r.AuthRoleAdd != nil ||
		r.AuthRoleGrantPermission != nil || r.AuthRoleDelete != nil || r.AuthUserDelete != nil)
}

// Write writes the data dirs node1, node2, … below root and returns their paths.
func (s *Script) Write(tb testing.TB, root string) []string {
	tb.Helper()
	var dirs []string
	for i := range s.Members {
		dir := filepath.Join(root, fmt.Sprintf("node%d", i+1))
		synthOK(tb, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
		s.writeWAL(tb, filepath.Join(dir, "member", "wal"), i)
		s.writeDB(tb, filepath.Join(dir, "member", "snap", "db"), i)
		dirs = append(dirs, dir)
	}
	return dirs
}

func (s *Script) writeWAL(tb testing.TB, dir string, member int) {
	tb.Helper()
	meta, err := (&etcdserverpb.Metadata{NodeID: s.ID(member), ClusterID: synthCluster}).Marshal()
	synthOK(tb, err)
	w, err := wal.Create(zap.NewNop(), dir, meta)
	synthOK(tb, err)
	w.SetUnsafeNoFsync()
	synthOK(tb, w.Save(raftpb.HardState{Term: 1, Commit: uint64(s.Members)}, Synth{Members: s.Members}.boot(tb)))
	of := s.Of[member]
	for i, st := range s.steps {
		if n := i + 1; of.SnapshotAt > 0 && n > of.LogUntil && n <= of.SnapshotAt {
			if n == of.SnapshotAt {
				s.upTo(n).snapshot(tb, w, dir, st.Term, s.Index(n)) // its file is all that stands for the entries
			}
			continue
		}
		e := raftpb.Entry{Term: st.Term, Index: s.Index(i + 1)}
		if !st.Empty {
			e.Data, err = st.Req.Marshal()
			synthOK(tb, err)
		}
		if i+1 == s.Purged && !of.KeepsLog {
			e.Data = s.fill(tb, e.Data)
		}
		synthOK(tb, w.Save(raftpb.HardState{Term: st.Term, Vote: s.ID(of.Votes[st.Term]), Commit: e.Index},
			[]raftpb.Entry{e}))
		if i+1 == s.Purged {
			s.upTo(i+1).snapshot(tb, w, dir, e.Term, e.Index)
		}
		if i+1 == of.SnapshotTaken {
			s.upTo(i+1).snapshot(tb, w, dir, e.Term, e.Index)
		}
	}
	synthOK(tb, w.Close())
	if s.Purged > 0 && !of.KeepsLog {
		purge(tb, dir, s.Index(s.Purged)+1)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	synthOK(tb, err)
	// A script fills a fraction of the segment; reading the rest of the preallocated zeros would only take time.
	synthOK(tb, os.Truncate(segments[len(segments)-1], 256<<10))
}

// fill makes an entry so large that the next one starts a new segment. The entry is never read: its segment is purged.
func (s *Script) fill(tb testing.TB, data []byte) []byte {
	tb.Helper()
	if wal.SegmentSizeBytes > 1<<20 {
		tb.Fatalf("segments of %d bytes: a purged script needs small ones", wal.SegmentSizeBytes)
	}
	// The writer of the log buffers up to 128 KiB, and starts a segment according to what it has flushed.
	return append(data, make([]byte, wal.SegmentSizeBytes+256<<10)...)
}

// upTo returns a cluster whose members have published the starts up to a step.
func (s *Script) upTo(step int) Synth {
	out := Synth{Members: s.Members, Purged: step + 1, Starts: map[int]int{}}
	for i, st := range s.steps[:step] {
		if st.Req != nil && st.Req.ClusterMemberAttrSet != nil {
			out.Starts[i] = st.By
		}
	}
	return out
}

// world returns the state of one member after the entries.
func (s *Script) world(member int) *world {
	w := newWorld(s.Of[member])
	for i, st := range s.steps {
		if n := s.Of[member].AppliedUntil; n > 0 && i == n {
			break
		}
		for _, again := range s.Of[member].Repeats {
			for n := again.From; again.Before == i+1 && n <= again.To; n++ {
				if r := s.steps[n-1].Req; r != nil {
					w.apply(r)
				}
			}
		}
		if st.Req != nil && !slices.Contains(st.Skip, member) {
			w.apply(st.requestOn(member))
		}
		if id := w.of.RevokesAlone[i+1]; id != 0 {
			w.apply(&etcdserverpb.InternalRaftRequest{LeaseRevoke: &etcdserverpb.LeaseRevokeRequest{ID: id}})
		}
		if n := len(w.records); n > 0 && w.of.FallsBack == i+1 {
			w.rev = w.records[n-1].main
		}
	}
	return w
}

// saved returns the consistent index of one member.
func (s *Script) saved(member int) uint64 {
	of := s.Of[member]
	switch {
	case of.IndexAt > 0:
		return s.Index(of.IndexAt)
	case of.AppliedUntil > 0:
		return s.Index(of.AppliedUntil)
	}
	return s.Index(len(s.steps))
}

// requestOn returns the part of the request that the member executed.
func (st *Step) requestOn(member int) *etcdserverpb.InternalRaftRequest {
	n, ok := st.Cut[member]
	if !ok {
		return st.Req
	}
	return &etcdserverpb.InternalRaftRequest{Header: st.Req.Header,
		Txn: &etcdserverpb.TxnRequest{Compare: st.Req.Txn.Compare, Success: st.Req.Txn.Success[:n]}}
}
