package evidence_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestCases: each case in testdata/cases builds a set of sources and says what is read of them. README.md there has the
// words.
func TestCases(t *testing.T) {
	for _, c := range casetest.Read(t, "testdata/cases/*.txt") {
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			if len(c.Wants) == 0 {
				t.Error("nothing is wanted")
			}
			set := casetest.Open(t, casetest.Build(t, c.Lines), evidence.Options{})
			for _, line := range c.Wants {
				checkCase(t, set, line)
			}
		})
	}
}

// checkCase compares the members with one line "want ...".
func checkCase(t *testing.T, set *evidence.Set, line casetest.Line) {
	t.Helper()
	words := line.Words(t)
	if len(words) < 2 {
		t.Fatalf("line %d: want WHAT NODE...", line.No)
	}
	m, want := memberOf(t, set, words[1]), strings.Join(words[2:], " ")
	var have string
	switch ms := &m.Membership; words[0] {
	case "voters":
		have = idsText(ms.Voters)
	case "learners":
		have = idsText(ms.Learners)
	case "removed":
		have = idsText(ms.Removed)
	case "refused":
		have = strings.Join(refusedOf(m), " ")
	case "peers":
		id, urls := words[2], strings.Join(words[3:], " ")
		want, have = urls, strings.Join(peersOf(ms)[id], " ")
	case "started":
		ids := slices.Sorted(maps.Keys(ms.Started))
		have = idsText(slices.DeleteFunc(ids, func(id dumplog.ID) bool { return !ms.Started[id] }))
	case "commit":
		have = fmt.Sprint(m.Commit)
	case "trailer":
		have = m.DB.Trailer.State
	case "comparable":
		have = yesNo(m.ListComparable())
	case "same-log":
		want, have = words[3], yesNo(sameLog(m, memberOf(t, set, words[2])))
	default:
		t.Fatalf("line %d: nothing is called %q", line.No, words[0])
	}
	if have != want {
		t.Errorf("line %d: %s: have %q, want %q", line.No, line.Rest, have, want)
	}
}

func memberOf(t *testing.T, set *evidence.Set, name string) *evidence.Member {
	t.Helper()
	i := slices.IndexFunc(set.Members, func(m *evidence.Member) bool { return m.Label() == name })
	if i < 0 {
		t.Fatalf("no source is called %s", name)
	}
	return set.Members[i]
}

func idsText(ids []dumplog.ID) string {
	var out []string
	for _, id := range ids {
		out = append(out, id.String())
	}
	return strings.Join(out, " ")
}

func refusedOf(m *evidence.Member) (out []string) {
	for _, c := range m.WAL.Conf {
		if c.Refused {
			out = append(out, fmt.Sprint(c.Index))
		}
	}
	return out
}

func peersOf(ms *evidence.Membership) map[string][]string {
	out := map[string][]string{}
	for id, urls := range ms.PeerURLs {
		out[id.String()] = urls
	}
	return out
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func sameLog(a, b *evidence.Member) bool {
	evidence.CommonWidth([]*evidence.LogSums{a.WAL.Sums, b.WAL.Sums})
	return maps.Equal(a.WAL.Sums.Blocks(), b.WAL.Sums.Blocks())
}
