package check

import (
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestRowsOfAttributes: a row of bucket members with a name or client URLs that the member never published. How much
// that says depends on whether the log is whole, and on whether the release may leave an older row.
func TestRowsOfAttributes(t *testing.T) {
	whole := []evidence.ConfEntry{founded(1, 1, "a"), founded(2, 2, "b"), updated(5, 1, "x")}
	purged := whole[2:]
	at := func(index uint64, name, url string) replay.Start {
		return replay.Start{Index: index, Name: name, ClientURLs: []string{url}}
	}
	const against, above = KindMemberRowAgainstLog, KindMemberRowAboveIndex
	for name, c := range map[string]struct {
		conf      []evidence.ConfEntry
		minor     int
		starts    []replay.Start
		row, url  string
		severity  Severity
		kind      Kind
		says      string
		unchecked bool
	}{
		"as published":              {conf: purged, minor: 7, row: "n1", url: "c1"},
		"as published before":       {conf: purged, minor: 7, row: "n0", url: "c0"},
		"as published, maybe":       {conf: purged, minor: 7, row: "n2", url: "c2"},
		"without a name and an URL": {conf: purged, minor: 7},
		"another name, purged": {conf: purged, minor: 7, row: "q", severity: Warning, kind: against,
			says: "edited or damaged"},
		"another name, whole": {conf: whole, minor: 7, row: "q", severity: Error, kind: against,
			says: "edited or damaged"},
		"another name, whole of 3.5": {conf: whole, minor: 5, row: "q", severity: Error, kind: against,
			says: "edited or damaged"},
		"another name of 3.5": {conf: purged, minor: 5, row: "q", severity: Info, kind: against,
			says: "3.5.1 to 3.5.19"},
		"another URL, purged": {conf: purged, minor: 7, url: "q", severity: Warning, kind: against,
			says: "edited or damaged"},
		"another URL, whole": {conf: whole, minor: 7, url: "q", severity: Error, kind: against,
			says: "edited or damaged"},
		"the name of a later entry": {conf: purged, minor: 7, row: "n3", severity: Error, kind: above},
		"the URL of a later entry":  {conf: purged, minor: 7, url: "c3", severity: Error, kind: above},
		"never published": {conf: purged, minor: 7, starts: []replay.Start{at(11, "n2", "c2")},
			row: "q", unchecked: true},
		"published after it": {conf: purged, minor: 7, starts: []replay.Start{at(13, "n3", "c3")},
			row: "q", unchecked: true},
	} {
		if c.starts == nil {
			c.starts = []replay.Start{at(3, "n0", "c0"), at(10, "n1", "c1"), at(12, "n2", "c2"), at(13, "n3", "c3")}
		}
		m := withDB(withLog(member("n1"), 20), 10)
		m.AppliedMax, m.WAL.Conf, m.Version.Minor = 12, c.conf, c.minor
		row := dumpdb.Member{ID: 1, Name: c.row}
		if c.url != "" {
			row.ClientURLs = []string{c.url}
		}
		in := &Input{Members: Sources{m}, Replay: &replay.Result{First: 1, Last: 20,
			Survey: &replay.Survey{Starts: map[dumplog.ID][]replay.Start{1: c.starts}}}}
		w := &rowFindings{in: in, by: map[string]*Finding{}}
		checked := w.attributes(m, &row)
		var f Finding
		for _, x := range w.by {
			f = *x
		}
		if checked == c.unchecked || f.Severity != c.severity || f.Kind != c.kind || len(w.by) > 1 ||
			!strings.Contains(f.Explanation, c.says) {
			t.Errorf("%s: checked %t, %+v", name, checked, f)
		}
		if c.kind == against && (f.At.Index != 10 || !strings.Contains(f.Explanation, "last in entry 10") ||
			(f.Class == ClassMembership) != (c.severity == Error)) {
			t.Errorf("%s: %+v", name, f)
		}
		if c.kind == above && (f.At.Index != 13 || !strings.Contains(f.Title, "entry 13")) {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if (&rowFindings{in: &Input{}}).attributes(member("n1"), &dumpdb.Member{}) {
		t.Error("without a replay, a row is checked")
	}
}

// TestRowsAsFounded: a name that the member was added or founded with counts like one that it published.
func TestRowsAsFounded(t *testing.T) {
	for given, want := range map[string]int{"q": 0, "r": 1} {
		m := withDB(withLog(member("n1"), 20), 10)
		first := founded(1, 1, "a")
		first.Change.Member.Name = given
		m.WAL.Conf, m.Version.Minor = []evidence.ConfEntry{first}, 7
		in := &Input{Members: Sources{m}, Replay: &replay.Result{First: 1, Last: 20, Survey: &replay.Survey{
			Starts: map[dumplog.ID][]replay.Start{1: {{Index: 3, Name: "n1"}}}}}}
		w := &rowFindings{in: in, by: map[string]*Finding{}}
		if w.attributes(m, &dumpdb.Member{ID: 1, Name: "q"}); len(w.by) != want {
			t.Errorf("founded as %s, the row says q: %d findings, want %d", given, len(w.by), want)
		}
	}
}
