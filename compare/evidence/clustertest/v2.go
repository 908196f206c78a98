package clustertest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v2store"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// V2 is the content of a v2 store that a test chooses: the member list and keys of v2 clients.
type V2 struct {
	Members []V2Member
	Removed []uint64
	Keys    []string
	// Version is the cluster version, "" for none.
	Version string
}

// V2Member is a row of the member list. Attributes is its JSON, "" if the member has not published itself.
type V2Member struct {
	ID         uint64
	Peer       string
	Learner    bool
	Attributes string
}

// synthV2 returns the list of the first members of a Synth or Script, all published.
func synthV2(voters []uint64) V2 {
	var v V2
	for _, id := range voters {
		i := id - synthMember
		v.Members = append(v.Members, V2Member{ID: id, Peer: fmt.Sprintf("http://127.0.0.1:%d", 2380+2*i),
			Attributes: fmt.Sprintf(`{"name":"node%d","clientURLs":["http://127.0.0.1:%d"]}`, i+1, 2379+2*i)})
	}
	return v
}

// SaveSnap writes a .snap file with etcd's own package: the v2 store and the voters.
func SaveSnap(tb testing.TB, dir string, term, index uint64, v V2, voters ...uint64) {
	tb.Helper()
	saveSnap(tb, dir, term, index, v, raftpb.ConfState{Voters: voters})
}

func saveSnap(tb testing.TB, dir string, term, index uint64, v V2, conf raftpb.ConfState) {
	tb.Helper()
	store := v2store.New("/0", "/1")
	create := func(path, value string) {
		_, err := store.Create(path, false, value, false, v2store.TTLOptionSet{ExpireTime: v2store.Permanent})
		synthOK(tb, err)
	}
	for _, m := range v.Members {
		learner := ""
		if m.Learner {
			learner = `,"isLearner":true`
		}
		create(fmt.Sprintf("/0/members/%x/raftAttributes", m.ID), fmt.Sprintf(`{"peerURLs":[%q]%s}`, m.Peer, learner))
		if m.Attributes != "" {
			create(fmt.Sprintf("/0/members/%x/attributes", m.ID), m.Attributes)
		}
	}
	for _, id := range v.Removed {
		create(fmt.Sprintf("/0/removed_members/%x", id), "")
	}
	if v.Version != "" {
		create("/0/version", v.Version)
	}
	for _, path := range v.Keys {
		create(path, "x")
	}
	data, err := store.SaveNoCopy()
	synthOK(tb, err)
	synthOK(tb, snap.New(zap.NewNop(), dir).SaveSnap(raftpb.Snapshot{Data: data,
		Metadata: raftpb.SnapshotMetadata{ConfState: conf, Term: term, Index: index}}))
}

// SaveSynthSnap is SaveSnap for the members of a Synth or Script.
func SaveSynthSnap(tb testing.TB, node string, term, index uint64, voters ...uint64) {
	tb.Helper()
	SaveSnap(tb, filepath.Join(node, "snap"), term, index, synthV2(voters), voters...)
}

// confChange updates the v2 store of a Hand from its log.
func (v *V2) confChange(cc raftpb.ConfChange) {
	at := slices.IndexFunc(v.Members, func(m V2Member) bool { return m.ID == cc.NodeID })
	switch {
	case cc.Type == raftpb.ConfChangeRemoveNode && at >= 0:
		v.Members, v.Removed = slices.Delete(v.Members, at, at+1), append(v.Removed, cc.NodeID)
	case cc.Type == raftpb.ConfChangeRemoveNode || cc.Type == raftpb.ConfChangeUpdateNode:
	case at >= 0:
		v.Members[at].Learner = v.Members[at].Learner && !strings.Contains(string(cc.Context), "isPromote")
	default:
		v.Members = append(v.Members, V2Member{ID: cc.NodeID, Peer: fmt.Sprintf("http://127.0.0.1:%d", cc.NodeID),
			Learner: cc.Type == raftpb.ConfChangeAddLearnerNode})
	}
}

func (v *V2) publish(id uint64) {
	for i := range v.Members {
		if v.Members[i].ID == id {
			v.Members[i].Attributes = fmt.Sprintf(`{"name":%q,"clientURLs":["http://127.0.0.1:2379"]}`, HandName(id))
		}
	}
}

// V2Request writes an entry with a request of a v2 client. Later snapshots contain the given keys.
func (h *Hand) V2Request(term, index uint64, r etcdserverpb.Request, keys ...string) {
	h.tb.Helper()
	data, err := r.Marshal()
	synthOK(h.tb, err)
	synthOK(h.tb, h.w.Save(raftpb.HardState{}, []raftpb.Entry{{Term: term, Index: index, Data: data}}))
	h.V2.Keys = keys
}
