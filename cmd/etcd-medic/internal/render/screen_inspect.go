package render

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// inspectScreen is the screen of inspect.
type inspectScreen struct{ reportScreen }

// write writes one source on one screen: what it is, what is wrong with it, and the next command.
func (p inspectScreen) write() {
	p.verdict()
	for i := range p.r.Members {
		m := &p.r.Members[i]
		p.line("")
		p.facts(m, sourceOf(p.r, m.Name))
	}
	p.worst(p.r.Findings)
	p.firstBreak()
	p.doNow()
	p.more()
	verdictSection{p.page}.lastLine(p.r)
}

// sourceOf returns the source of a member.
func sourceOf(r *compare.Report, name string) *compare.Source {
	for i := range r.Sources {
		if r.Sources[i].Name == name {
			return &r.Sources[i]
		}
	}
	return &compare.Source{}
}

// facts writes the most important facts, one per line.
func (p inspectScreen) facts(m *evidence.Facts, s *compare.Source) {
	show := func(head string, parts ...string) {
		var said []string
		for _, part := range parts {
			if part != "" {
				said = append(said, part)
			}
		}
		if len(said) > 0 {
			p.hanging(fmt.Sprintf("%-10s ", head), strings.Join(said, ", "), 1)
		}
	}
	show("SOURCE", string(s.Kind), plural.Of(s.Files, "file", "files"), plural.Size(s.Bytes), missingText(m))
	show("MEMBER", m.Name, prefixed("ID ", m.MemberID != 0, hexID(uint64(m.MemberID))),
		prefixed("cluster ", m.ClusterID != 0, hexID(uint64(m.ClusterID))),
		prefixed("etcd ", m.WroteBy.Etcd != nil, orDash(m.WroteBy.Etcd)))
	if w := m.WAL; w != nil {
		show("LOG", fmt.Sprintf("entries %d to %s", w.FirstIndex, termIndex(w.LastTerm, w.LastIndex)),
			"committed "+num0(m.Commit),
			plural.Of(len(w.Segments), "segment", "segments"), string(w.Start), damaged(len(w.Damage)))
	}
	if d := m.DB; d != nil {
		show("DATABASE", plural.Size(d.Size), "revision "+d.RevisionText(),
			prefixed("compacted at ", d.CompactRevision != nil && *d.CompactRevision >= 0,
				compactText(d.CompactRevision)), d.KeysText()+" keys",
			"applied "+ptr(d.ConsistentIndex), damaged(len(d.Damage)))
	}
	if a := m.Auth; a != nil {
		show("AUTH", onOff(a.Enabled), fmt.Sprintf("revision %d", a.Revision), plural.Of(len(a.Users), "user", "users"),
			plural.Of(len(a.Roles), "role", "roles"))
	}
	voters := plural.Of(len(m.Membership.Voters), "voter", "voters")
	if len(m.Membership.Voters) == 0 { // a snapshot has no raft configuration
		voters = ""
	}
	show("CLUSTER", voters,
		prefixed("", len(m.Membership.Learners) > 0, plural.Of(len(m.Membership.Learners), "learner", "learners")),
		prefixed("version ", m.ClusterVersion != "", m.ClusterVersion), plural.Of(len(m.Leases), "lease", "leases"),
		plural.Of(len(m.Alarms), "alarm", "alarms"))
}

func missingText(m *evidence.Facts) string {
	if len(m.Missing) == 0 {
		return ""
	}
	return "no " + strings.Join(m.Missing, ", no ")
}

// prefixed returns a fact with a word before it, "" if it is unknown.
func prefixed(word string, known bool, fact string) string {
	if !known {
		return ""
	}
	return word + fact
}

func damaged(n int) string {
	if n == 0 {
		return ""
	}
	return plural.Of(n, "damaged place", "damaged places")
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
