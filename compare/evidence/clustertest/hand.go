package clustertest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/membershippb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// Hand writes a data dir record by record, for histories that a healthy cluster cannot have. It writes the WAL with
// etcd's own package, which does not check the content. The database contains what the test puts into it.
type Hand struct {
	tb testing.TB
	// Dir is the data dir, ID and Cluster its identity.
	Dir         string
	ID, Cluster uint64
	w           *wal.WAL
	rows        []handRow
	versions    map[string]*synthKey
	rev         int64
	// V2 is the v2 store for snapshots. It follows the log, and a test may change it.
	V2       V2
	learners []uint64
}

type handRow struct {
	bucket     string
	key, value []byte
}

// NewHand starts a data dir below root. The node's peer URL is derived from the ID, so that every member list agrees.
func NewHand(tb testing.TB, root, name string, id, cluster uint64) *Hand {
	tb.Helper()
	h := &Hand{tb: tb, Dir: filepath.Join(root, name), ID: id, Cluster: cluster, rev: 1,
		versions: map[string]*synthKey{}}
	synthOK(tb, os.MkdirAll(filepath.Join(h.Dir, "member", "snap"), 0o700))
	meta, err := (&etcdserverpb.Metadata{NodeID: id, ClusterID: cluster}).Marshal()
	synthOK(tb, err)
	h.w, err = wal.Create(zap.NewNop(), filepath.Join(h.Dir, "member", "wal"), meta)
	synthOK(tb, err)
	h.w.SetUnsafeNoFsync()
	return h
}

// Found writes the records of a bootstrap of the voters, or with restored those of a restore.
func (h *Hand) Found(restored bool, voters ...uint64) {
	h.tb.Helper()
	var ents []raftpb.Entry
	for i, id := range voters {
		cc := raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: id, Context: memberJSON(id, "")}
		ents = append(ents, confEntry(h.tb, 1, uint64(i+1), cc))
		h.V2.confChange(cc)
	}
	n := uint64(len(voters))
	st := raftpb.HardState{Term: 1, Commit: n}
	if restored {
		st.Vote = voters[0]
	}
	synthOK(h.tb, h.w.Save(st, ents))
	if restored {
		h.Snapshot(1, n, voters...)
	}
}

// Snapshot writes a .snap file and its record.
func (h *Hand) Snapshot(term, index uint64, voters ...uint64) {
	h.tb.Helper()
	conf := raftpb.ConfState{Voters: voters, Learners: slices.DeleteFunc(slices.Clone(h.learners),
		func(id uint64) bool { return slices.Contains(voters, id) })}
	saveSnap(h.tb, filepath.Join(h.Dir, "member", "snap"), term, index, h.V2, conf)
	synthOK(h.tb, h.w.SaveSnapshot(walpb.Snapshot{Term: term, Index: index, ConfState: &conf}))
}

// State writes a HardState.
func (h *Hand) State(term, vote, commit uint64) {
	h.tb.Helper()
	synthOK(h.tb, h.w.Save(raftpb.HardState{Term: term, Vote: vote, Commit: commit}, nil))
}

// Request writes an entry with a request; a nil request is the empty entry of a new leader.
func (h *Hand) Request(term, index uint64, r *etcdserverpb.InternalRaftRequest) {
	h.tb.Helper()
	e := raftpb.Entry{Term: term, Index: index}
	if r != nil {
		data, err := r.Marshal()
		synthOK(h.tb, err)
		e.Data = data
	}
	synthOK(h.tb, h.w.Save(raftpb.HardState{}, []raftpb.Entry{e}))
}

// RequestID returns the ID of a member's nth request if its process started at that millisecond.
func RequestID(member, start, n uint64) uint64 { return member<<48 | (start&(1<<40-1))<<8 + n }

// Put writes the entry of a put and, if applied, its revision.
func (h *Hand) Put(term, index, id uint64, key, value string, applied bool) {
	h.tb.Helper()
	h.Request(term, index, &etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: id},
		Put: &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value)}})
	if applied {
		h.Revision(key, value)
	}
}

// RootRevokes writes entries from an index on: auth is turned on, root puts a key with a lease, auth changes, and root
// revokes the lease with an auth revision in the header: 5 is that of then, and with 4 it depends on the patch release
// whether the revoke takes effect. It returns the index of the revoke.
func (h *Hand) RootRevokes(index, authRevision uint64) uint64 {
	h.tb.Helper()
	for i, r := range []*etcdserverpb.InternalRaftRequest{
		{AuthRoleAdd: &etcdserverpb.AuthRoleAddRequest{Name: "root"}},
		{AuthUserAdd: &etcdserverpb.AuthUserAddRequest{Name: "root", HashedPassword: "aGFzaA=="}},
		{AuthUserGrantRole: &etcdserverpb.AuthUserGrantRoleRequest{User: "root", Role: "root"}},
		{AuthEnable: &etcdserverpb.AuthEnableRequest{}},
		GrantRequest(7, 60), PutRequest("k", "1", 7),
		{AuthRoleAdd: &etcdserverpb.AuthRoleAddRequest{Name: "more"}}} {
		at := uint64(0)
		if i > 3 {
			at = 4
		}
		h.RootRequest(index+uint64(i), at, r)
	}
	h.RootRequest(index+7, authRevision, RevokeRequest(7))
	return index + 7
}

// RootRequest is Request by user root with an auth revision in the header; with 0 auth is off.
func (h *Hand) RootRequest(index, authRevision uint64, r *etcdserverpb.InternalRaftRequest) {
	h.tb.Helper()
	r.Header = &etcdserverpb.RequestHeader{ID: RequestID(h.ID, 1000, index), AuthRevision: authRevision}
	if authRevision > 0 {
		r.Header.Username = "root"
	}
	h.Request(2, index, r)
}

// Revision writes the next revision of the key into the database.
func (h *Hand) Revision(key, value string) { h.LeasedRevision(key, value, 0) }

// LeasedRevision is Revision for a key with a lease.
func (h *Hand) LeasedRevision(key, value string, lease int64) {
	h.tb.Helper()
	h.rev++
	k := h.versions[key]
	if k == nil {
		k = &synthKey{create: h.rev}
		h.versions[key] = k
	}
	k.version++
	data, err := (&mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: k.create, ModRevision: h.rev,
		Version: k.version, Lease: lease}).Marshal()
	synthOK(h.tb, err)
	at := append(binary.BigEndian.AppendUint64(nil, uint64(h.rev)), '_')
	h.Row("key", string(binary.BigEndian.AppendUint64(at, 0)), string(data))
}

// Publish writes the entry that a server proposes after its start.
func (h *Hand) Publish(term, index, member, id uint64) {
	h.tb.Helper()
	h.V2.publish(member)
	h.Request(term, index, &etcdserverpb.InternalRaftRequest{Header: &etcdserverpb.RequestHeader{ID: id},
		ClusterMemberAttrSet: &membershippb.ClusterMemberAttrSetRequest{
			Member_ID: member, MemberAttributes: &membershippb.Attributes{Name: HandName(member),
				ClientUrls: []string{"http://127.0.0.1:2379"}}}})
}

// Conf writes the entry of a membership change.
func (h *Hand) Conf(term, index uint64, cc raftpb.ConfChange) {
	h.tb.Helper()
	h.V2.confChange(cc)
	if cc.Type == raftpb.ConfChangeAddLearnerNode {
		h.learners = append(h.learners, cc.NodeID)
	}
	synthOK(h.tb, h.w.Save(raftpb.HardState{}, []raftpb.Entry{confEntry(h.tb, term, index, cc)}))
}

// AddLearner is a membership change that adds a learner, as a client requests it.
func AddLearner(id, request uint64) raftpb.ConfChange {
	return raftpb.ConfChange{ID: request, Type: raftpb.ConfChangeAddLearnerNode, NodeID: id,
		Context: memberJSON(id, `,"isLearner":true`)}
}

// AddVoter is a membership change that adds a voter.
func AddVoter(id, request uint64) raftpb.ConfChange {
	return raftpb.ConfChange{ID: request, Type: raftpb.ConfChangeAddNode, NodeID: id, Context: memberJSON(id, "")}
}

// Promote is a membership change that makes a learner a voter.
func Promote(id, request uint64) raftpb.ConfChange {
	return raftpb.ConfChange{ID: request, Type: raftpb.ConfChangeAddNode, NodeID: id,
		Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":null,"isPromote":true}`, id)}
}

// MoveMember is a membership change that gives a member the peer URL http://127.0.0.1:9.
func MoveMember(id, request uint64) raftpb.ConfChange {
	return raftpb.ConfChange{ID: request, Type: raftpb.ConfChangeUpdateNode, NodeID: id,
		Context: fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:9"]}`, id)}
}

// RemoveMember removes a member; request 0 means a removal by a forced start.
func RemoveMember(id, request uint64) raftpb.ConfChange {
	return raftpb.ConfChange{ID: request, Type: raftpb.ConfChangeRemoveNode, NodeID: id}
}

func confEntry(tb testing.TB, term, index uint64, cc raftpb.ConfChange) raftpb.Entry {
	tb.Helper()
	data, err := cc.Marshal()
	synthOK(tb, err)
	return raftpb.Entry{Term: term, Index: index, Type: raftpb.EntryConfChange, Data: data}
}

func memberJSON(id uint64, more string) []byte {
	return fmt.Appendf(nil, `{"id":%d,"peerURLs":["http://127.0.0.1:%d"]%s}`, id, id, more)
}

// HandName returns the name that a member publishes.
func HandName(id uint64) string { return fmt.Sprintf("node%x", id&0xf+id>>16) }

// Member writes a row of bucket members, Removed one of members_removed.
func (h *Hand) Member(id uint64, learner, started bool) {
	more := ""
	if learner {
		more = `,"isLearner":true`
	}
	if started {
		more += fmt.Sprintf(`,"name":%q,"clientURLs":["http://127.0.0.1:2379"]`, HandName(id))
	}
	h.Row("members", fmt.Sprintf("%x", id), string(memberJSON(id, more)))
}

// Removed writes a row of bucket members_removed.
func (h *Hand) Removed(id uint64) { h.Row("members_removed", fmt.Sprintf("%x", id), "removed") }

// Row writes any row.
func (h *Hand) Row(bucket, key, value string) {
	h.rows = append(h.rows, handRow{bucket, []byte(key), []byte(value)})
}

// Versions stores the versions of a cluster of one line, as servers of 3.6 and later do.
func (h *Hand) Versions(version string) {
	h.Row("meta", "storageVersion", version)
	h.Row("cluster", "clusterVersion", version)
}

// Close writes the database with this consistent index and term and closes the log. It returns the data dir.
func (h *Hand) Close(index, term uint64) string {
	h.tb.Helper()
	synthOK(h.tb, h.w.Close())
	synthOK(h.tb, evidencetest.CutLogs(filepath.Join(h.Dir, "member", "wal")))
	h.Row("meta", "consistent_index", string(binary.BigEndian.AppendUint64(nil, index)))
	h.Row("meta", "term", string(binary.BigEndian.AppendUint64(nil, term)))
	db, err := bbolt.Open(filepath.Join(h.Dir, "member", "snap", "db"), 0o600,
		&bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	synthOK(h.tb, err)
	synthOK(h.tb, db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{"key", "meta", "members", "cluster", "lease", "alarm", "auth", "authUsers",
			"authRoles", "members_removed"} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		for _, r := range h.rows {
			if err := tx.Bucket([]byte(r.bucket)).Put(r.key, r.value); err != nil {
				return err
			}
		}
		return nil
	}))
	synthOK(h.tb, db.Close())
	return h.Dir
}
