package cause

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// TestEntriesOfOneLog: entries that the databases contradict are a hint at every log that holds them, each named once.
// Other logs do not contradict them.
func TestEntriesOfOneLog(t *testing.T) {
	differ := check.Finding{Check: check.K03, ID: "K03-1", Members: []string{"n1", "n3"}}
	doubted := func(logs ...int) replay.Doubted { return replay.Doubted{Index: 40, Logs: logs} }
	for name, c := range map[string]struct {
		doubted  []replay.Doubted
		findings []check.Finding
		unread   bool
		want     []string
	}{
		"of one log": {doubted: []replay.Doubted{doubted(1)}, findings: []check.Finding{differ},
			want: []string{"n2"}},
		"of two": {doubted: []replay.Doubted{doubted(0, 2)}, findings: []check.Finding{differ},
			want: []string{"n1", "n3"}},
		"two of one log": {doubted: []replay.Doubted{doubted(2), doubted(2, 0)}, findings: []check.Finding{differ},
			want: []string{"n3", "n1"}},
		"none is doubted":       {findings: []check.Finding{differ}},
		"no database disagrees": {doubted: []replay.Doubted{doubted(1)}},
		"the logs differ": {doubted: []replay.Doubted{doubted(1)},
			findings: []check.Finding{differ, {Check: check.R01, ID: "R01-1", Kind: check.KindCommittedEntriesDiffer}}},
		"not replayed": {unread: true, findings: []check.Finding{differ}},
	} {
		in := sources("n1", "n2", "n3")
		in.Replay.Doubted = c.doubted
		if c.unread {
			in.Replay = nil
		}
		for _, f := range c.findings {
			in.Findings[f.Check] = append(in.Findings[f.Check], f)
		}
		m := logEntryAltered.Match(in)
		switch {
		case len(c.want) == 0 && m != nil:
			t.Errorf("%s: it names %v because %v", name, m.Members, m.Because)
		case len(c.want) > 0 && (m == nil || m.Certainty != Hint || !slices.Equal(m.Members, c.want) ||
			!slices.Equal(m.Because, []string{"K03-1"})):
			t.Errorf("%s: %+v, want %v", name, m, c.want)
		}
	}
}

// TestVersionAt: the cluster version at an entry is what the entries before it set last, else what wrote the member.
func TestVersionAt(t *testing.T) {
	set := func(index uint64, version string) replay.VersionSet {
		return replay.VersionSet{Index: index, Version: version}
	}
	for name, c := range map[string]struct {
		sets []replay.VersionSet
		want int
	}{
		"none is set":      {nil, 5},
		"set before":       {[]replay.VersionSet{set(4, "3.2.0"), set(9, "3.3.0")}, 3},
		"set in the entry": {[]replay.VersionSet{set(4, "3.2.0"), set(10, "3.3.0")}, 2},
		"no version":       {[]replay.VersionSet{set(4, "3.2.0"), set(9, "x")}, 2},
	} {
		in := sources("n1")
		in.Members[0].Version.Minor, in.Replay.Survey.Versions = 5, c.sets
		if got := versionAt(in, 0, 10); got.Minor() != c.want {
			t.Errorf("%s: %v, want 3.%d", name, got, c.want)
		}
	}
	in := sources("n1")
	in.Members[0].Version.Minor, in.Replay.Survey = 4, nil
	if got := versionAt(in, 0, 10); got.Minor() != 4 {
		t.Errorf("no survey: %v", got)
	}
}
