package soak

import (
	"encoding/json"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/release"
)

// memberFaults alter the member list.
var memberFaults = []Fault{
	{Name: "member-peer-url",
		Apply: alterMember(func(m map[string]any) { m["peerURLs"] = []string{"http://127.63.9.9:2380"} })},
	{Name: "member-client-url",
		Apply: published(alterMember(func(m map[string]any) { m["clientURLs"] = []string{"http://127.63.9.9:2379"} }))},
	{Name: "member-name", Apply: published(alterMember(func(m map[string]any) { m["name"] = "other" }))},
	{Name: "member-learner", Needs: release.Learners, Apply: alterMember(func(m map[string]any) {
		if m["isLearner"] == true {
			delete(m, "isLearner")
		} else {
			m["isLearner"] = true
		}
	})},
	{Name: "member-dropped", Apply: dropAny("members")},
	{Name: "member-added", Apply: addRow("members", "7e57ab1e7e57ab1e", func(string) string {
		return `{"id":9103815302530509598,"peerURLs":["http://127.63.9.8:2380"],"name":"zombie","clientURLs":["http://127.63.9.8:2379"]}`
	})},
	{Name: "member-removed-live", Apply: removeLive},
	{Name: "member-removed-dropped", Apply: dropAny("members_removed")},
	{Name: "cluster-version", Apply: alterRow("cluster", "clusterVersion", func(string) string { return "4.9.0" })},
}

// alterMember changes one row of bucket members.
func alterMember(alter func(map[string]any)) func(*Victim) (*Effect, error) {
	return alterAny("members", func(v string) string {
		// The ID does not fit into a float.
		dec := json.NewDecoder(strings.NewReader(v))
		dec.UseNumber()
		m := map[string]any{}
		if dec.Decode(&m) != nil {
			return ""
		}
		alter(m)
		b, err := json.Marshal(m)
		if err != nil {
			return ""
		}
		return string(b)
	})
}

// published is an edit of what a member published at a start. 3.5.1 to 3.5.19 leave the first value in the row, and no
// database says which patch release wrote it. So on 3.5 another member's row shows nothing, and a log shows the edit
// only if it holds everything that was published.
func published(alter func(*Victim) (*Effect, error)) func(*Victim) (*Effect, error) {
	return func(f *Victim) (*Effect, error) {
		effect, err := alter(f)
		if err == nil && release.AnyOf(release.Of(f.Line).Minor()).Has(release.MemberRowsReplaced) == release.Unknown {
			witness := effect.Witness
			effect.Witness = func(dir string) bool { return !f.Restored && startsAtFirstEntry(dir) && witness(dir) }
		}
		return effect, err
	}
}

// removeLive notes a member as removed that is a voter.
func removeLive(f *Victim) (*Effect, error) {
	all, err := rows(f.Dir, "members")
	if err != nil {
		return nil, err
	}
	if len(all) < 2 {
		return nil, errNotHere
	}
	r := row{"members_removed", all[f.Rng.IntN(len(all))].key, ""}
	effect := rowEffect(f, "a voter is noted as removed", r, memberClasses)
	effect.Alone = true // a row of both buckets contradicts itself
	return effect, editDB(f.Dir, r.put("removed"))
}

// metadata returns the identity in the log.
func metadata(dir string) (etcdserverpb.Metadata, bool) {
	segs, err := readLog(dir)
	if err != nil {
		return etcdserverpb.Metadata{}, false
	}
	for _, s := range segs {
		for _, r := range s.records {
			var m etcdserverpb.Metadata
			if r.typ == recMetadata && m.Unmarshal(r.data) == nil {
				return m, true
			}
		}
	}
	return etcdserverpb.Metadata{}, false
}

func nodeID(dir string) uint64 {
	m, _ := metadata(dir)
	return m.NodeID
}
