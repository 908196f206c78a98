package check

import (
	"fmt"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// The v2 store in a .snap file holds the history of its last changes next to their results, both with the store's own
// index (WatcherHub.EventHistory in server/etcdserver/api/v2store). No other evidence is needed to compare the two.

// againstEvents compares the list of members in each .snap file with the events that wrote it. False if no file has
// such an event.
func (in v2Lists) againstEvents(m *evidence.Member) (fs []Finding, checked bool) {
	for _, s := range m.Snap.Files {
		if s.Damage != nil || s.V2 == nil {
			continue
		}
		checked = checked || s.V2.InHistory > 0
		if len(s.V2.Altered) > 0 {
			fs = append(fs, in.alteredNodes(m, s))
		}
	}
	return fs, checked
}

func (in v2Lists) alteredNodes(m *evidence.Member, s *dumplog.SnapFile) Finding {
	altered := s.V2.Altered
	f := Finding{Kind: KindV2MembersAgainstEvents, Severity: Error, Class: ClassMembership,
		Members: []string{m.Label()}, At: At{Term: s.Term, Index: s.Index},
		Title: fmt.Sprintf("%s: the v2 store in %s contradicts its own history in %s", m.Label(), s.File,
			plural.Of(len(altered), "place", "places")),
		Explanation: "next to the nodes, the file holds the last events that wrote them (WatcherHub), and the event " +
			"with the node's modifiedIndex wrote another value. One of the two was edited or damaged"}
	if m.Version.Has(release.V2StoreKept).Excluded() {
		f.Severity, f.Class = Warning, ""
	}
	for i := range altered {
		in.add(&f, func() Evidence {
			a := &altered[i]
			return Evidence{Member: m.Label(), File: s.File, Key: Bytes(a.Path),
				Field:    fmt.Sprintf("node with modifiedIndex %d", a.Index),
				Observed: a.Value, Expected: a.Written, Show: showLogAs(m, "--snaps")}
		})
	}
	return f
}
