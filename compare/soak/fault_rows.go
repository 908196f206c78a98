package soak

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/etcd-medic/etcd-medic/release"
)

// rowFaults alter rows of the small buckets in further ways.
var rowFaults = []Fault{
	{Name: "auth-user-root", Apply: alterAny("authUsers", func(v string) string {
		return editProto(v, &authpb.User{}, func(u *authpb.User) {
			if !slices.Contains(u.Roles, "root") {
				u.Roles = append(u.Roles, "root")
				slices.Sort(u.Roles)
			}
		})
	})},
	{Name: "auth-permission-type", Apply: alterAny("authRoles", func(v string) string {
		return editProto(v, &authpb.Role{}, func(r *authpb.Role) {
			for _, p := range r.KeyPermission {
				p.PermType = (p.PermType + 1) % 3
			}
		})
	})},
	{Name: "auth-permission-range", Apply: alterAny("authRoles", func(v string) string {
		return editProto(v, &authpb.Role{}, func(r *authpb.Role) {
			for _, p := range r.KeyPermission {
				p.RangeEnd = []byte{0}
			}
		})
	})},
	{Name: "auth-role-added", Apply: addRow("authRoles", "intruders", func(string) string {
		return editProto("", &authpb.Role{}, func(r *authpb.Role) { r.Name = []byte("intruders") })
	})},
	{Name: "auth-revision-dropped", Apply: func(f *Victim) (*Effect, error) {
		users, err := rows(f.Dir, "authUsers")
		if err != nil {
			return nil, err
		}
		if len(users) == 0 {
			return nil, errNotHere
		}
		return alone(dropKey("auth", "authRevision"))(f)
	}},
	{Name: "lease-remaining", Needs: release.LeaseCheckpoints, Apply: alterRemaining},
	{Name: "lease-bit-flipped", Apply: flipRow("lease", func(v string) string {
		return editProto(v, &leasepb.Lease{}, func(l *leasepb.Lease) { l.RemainingTTL = 0 }) // a member's own
	})},
	{Name: "auth-role-bit-flipped", Apply: flipRow("authRoles", func(v string) string {
		return editProto(v, &authpb.Role{}, func(*authpb.Role) {})
	})},
	{Name: "auth-user-bit-flipped", Needs: release.PasswordHashInRequest,
		Apply: flipRow("authUsers", func(v string) string {
			return editProto(v, &authpb.User{}, func(*authpb.User) {})
		})},
	{Name: "lease-id", Apply: alone(alterAny("lease", func(v string) string {
		return editProto(v, &leasepb.Lease{}, func(l *leasepb.Lease) { l.ID += 3 })
	}))},
	{Name: "alarm-dropped", Apply: dropAny("alarm")},
	{Name: "member-id", Apply: alone(alterMember(func(m map[string]any) { m["id"] = json.Number("77777") }))},
	{Name: "member-removed-added", Apply: likeAZombie(addRow("members_removed", "7e57ab1e7e57ab1f",
		func(string) string { return "removed" }))},
	{Name: "cluster-version-lower", Apply: alterRow("cluster", "clusterVersion", func(v string) string {
		const lowest = "3.0.0"
		if v == lowest {
			return ""
		}
		return lowest
	})},
	{Name: "cluster-version-dropped", Apply: dropKey("cluster", "clusterVersion")},
	{Name: "cindex-zero", Apply: setIndex(func(int64) int64 { return 0 })},
	{Name: "cindex-highest", Apply: setIndex(func(int64) int64 { return math.MaxInt64 })},
	{Name: "meta-term-lower", Needs: release.TermInMeta, Apply: func(f *Victim) (*Effect, error) {
		was, index := number(f.Dir, "term"), number(f.Dir, "consistent_index")
		if was < 2 {
			return nil, errNotHere
		}
		effect, err := metaSet("term", func(_ *Victim, v int64) int64 { return v - 1 })(f)
		if err == nil {
			effect.Alone = holdsEntry(f.Dir, index, was)
		}
		return effect, err
	}},
	{Name: "conf-state-voter-dropped", Needs: release.TermInMeta, Apply: func(f *Victim) (*Effect, error) {
		return alterConfState(f, func(cs *raftpb.ConfState) bool {
			if len(cs.Voters) < 2 {
				return false
			}
			cs.Voters = cs.Voters[:len(cs.Voters)-1]
			return true
		})
	}},
	{Name: "conf-state-learner", Needs: release.TermInMeta, Apply: func(f *Victim) (*Effect, error) {
		return alterConfState(f, func(cs *raftpb.ConfState) bool {
			if len(cs.Voters) < 2 {
				return false
			}
			cs.Learners, cs.Voters = append(cs.Learners, cs.Voters[0]), cs.Voters[1:]
			return true
		})
	}},
}

// flipRow flips one bit of a row of a bucket; meaning is what a server reads of a value, "" if it cannot be read.
func flipRow(bucket string, meaning func(string) string) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r, err := anyRow(f, bucket)
		if err != nil {
			return nil, err
		}
		b := []byte(r.value)
		if len(b) == 0 {
			return nil, errNotHere
		}
		at := f.Rng.IntN(len(b))
		b[at] ^= 1 << f.Rng.IntN(8)
		now := meaning(string(b))
		if now == meaning(r.value) {
			return nil, errNotHere // a field that is never read
		}
		effect := rowEffect(f, fmt.Sprintf("a bit of byte %d flipped", at), r, classesOf(bucket))
		raised := raisesTTL(bucket, r.value, string(b))
		effect.Alone = effect.Alone && raised == 0 || now == ""
		if raised > 0 && raised <= longestMinimum && now != "" {
			effect.Witness = nil // members with different election timeouts differ like this
		}
		return effect, editDB(f.Dir, r.put(string(b)))
	}
}

// longestMinimum is the highest TTL in seconds to which a server raises lower ones: 1.5 times the longest election
// timeout that it accepts.
const longestMinimum = 75

// alterRemaining gives a lease a remaining TTL. Whether a member stores that of a checkpoint is its own setting. Only a
// log with the whole life of the lease, and without a checkpoint, shows that there was none.
func alterRemaining(f *Victim) (*Effect, error) {
	var id int64
	effect, err := alterAny("lease", func(v string) string {
		return editProto(v, &leasepb.Lease{}, func(l *leasepb.Lease) { l.RemainingTTL, id = max(1, l.TTL/2), l.ID })
	})(f)
	if err == nil && !grantedIn(f.Dir, id) {
		effect.Witness = nil
	}
	return effect, err
}

// grantedIn reports whether a log holds the grant of a lease.
func grantedIn(dir string, id int64) bool {
	segs, err := readLog(dir)
	if err != nil {
		return false
	}
	_, list := entries(segs)
	return slices.ContainsFunc(list, func(e raftpb.Entry) bool {
		var r pb.InternalRaftRequest
		return e.Type == raftpb.EntryNormal && r.Unmarshal(e.Data) == nil && r.LeaseGrant != nil &&
			r.LeaseGrant.ID == id
	})
}

// raisesTTL returns the TTL of a row that grants a lease for longer than another, 0 if it does not. A log does not show
// that it is wrong: servers raise the TTL to a minimum that depends on their election timeout.
func raisesTTL(bucket, before, after string) int64 {
	var was, is leasepb.Lease
	if bucket == "lease" && was.Unmarshal([]byte(before)) == nil && is.Unmarshal([]byte(after)) == nil &&
		was.ID == is.ID && is.TTL > was.TTL {
		return is.TTL
	}
	return 0
}

// alterConfState edits the configuration in bucket meta, which the server writes as JSON.
func alterConfState(f *Victim, alter func(*raftpb.ConfState) bool) (*Effect, error) {
	r, err := metaRow(f, "confState")
	if err != nil {
		return nil, err
	}
	var cs raftpb.ConfState
	if json.Unmarshal([]byte(r.value), &cs) != nil || !alter(&cs) {
		return nil, errNotHere
	}
	b, err := json.Marshal(cs)
	if err != nil {
		return nil, err
	}
	// It may be an older one, which a server that was killed early stores again while it replays the log. So a log that
	// holds all configurations shows only one that the cluster never had.
	effect := rowEffect(f, "another configuration", r, append([]string{"db-damage"}, memberClasses...))
	effect.MayShareBest = true // no server reads it
	effect.MayShareBest = true
	index := number(f.Dir, "consistent_index")
	effect.Witness = func(dir string) bool {
		_, last := logBounds(dir)
		return !f.Restored && startsAtFirstEntry(dir) && int64(last) >= index && !wasConfigured(dir, &cs)
	}
	effect.Alone = effect.Alone && !wasConfigured(f.Dir, &cs)
	return effect, editDB(f.Dir, r.put(string(b)))
}

// wasConfigured reports whether the conf changes of a log gave the configuration at some index.
func wasConfigured(dir string, cs *raftpb.ConfState) bool {
	segs, err := readLog(dir)
	if err != nil {
		return false
	}
	learner := map[uint64]bool{} // by member
	_, list := entries(segs)
	for i := range list {
		var c raftpb.ConfChange
		if list[i].Type != raftpb.EntryConfChange || c.Unmarshal(list[i].Data) != nil {
			continue
		}
		if c.Type == raftpb.ConfChangeRemoveNode {
			delete(learner, c.NodeID)
		} else if c.Type != raftpb.ConfChangeUpdateNode {
			learner[c.NodeID] = c.Type == raftpb.ConfChangeAddLearnerNode
		}
		var now raftpb.ConfState
		for _, id := range slices.Sorted(maps.Keys(learner)) {
			if learner[id] {
				now.Learners = append(now.Learners, id)
			} else {
				now.Voters = append(now.Voters, id)
			}
		}
		if slices.Equal(now.Voters, slices.Sorted(slices.Values(cs.Voters))) &&
			slices.Equal(now.Learners, slices.Sorted(slices.Values(cs.Learners))) {
			return true
		}
	}
	return false
}

// holdsEntry reports whether the log has an entry of that index and term.
func holdsEntry(dir string, index, term int64) bool {
	segs, err := readLog(dir)
	if err != nil {
		return false
	}
	_, list := entries(segs)
	return slices.ContainsFunc(list, func(e raftpb.Entry) bool {
		return e.Index == uint64(index) && e.Term == uint64(term)
	})
}

// dropKey drops one row by its key.
func dropKey(bucket, key string) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		r := row{bucket, key, ""}
		if !hasRow(f.Dir, bucket, key) {
			return nil, errNotHere
		}
		r.value = rowValue(f.Dir, r)
		return rowEffect(f, "dropped", r, classesOf(bucket)), editDB(f.Dir, r.drop())
	}
}

// setIndex writes a consistent index that is impossible for the content.
func setIndex(to func(int64) int64) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		ks, err := readKeyspace(f.Dir)
		if err != nil {
			return nil, err
		}
		if ks.last == 0 || number(f.Dir, "consistent_index") == 0 {
			return nil, errNotHere
		}
		return metaSet("consistent_index", func(_ *Victim, v int64) int64 { return to(v) })(f)
	}
}
