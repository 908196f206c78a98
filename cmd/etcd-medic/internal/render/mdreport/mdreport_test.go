package mdreport

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/shell"
)

func TestMain(m *testing.M) { evidencetest.Main(m) }

// outside returns the lines that are in no block of code, by number, and whether a block is left open. A block ends
// with at least as many backticks as it begins with.
func outside(text string) (lines map[int]string, open bool) {
	lines = map[int]string{}
	fence := ""
	for n, l := range strings.Split(text, "\n") {
		ticks := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3:
			fence = ticks
		case fence == "":
			lines[n+1] = l
		case l == ticks && len(ticks) >= len(fence):
			fence = ""
		}
	}
	return lines, fence != ""
}

func write(t *testing.T, d *dossier.Dossier) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	if b.Len() > MaxSize {
		t.Errorf("%d bytes", b.Len())
	}
	if _, open := outside(b.String()); open {
		t.Error("a block of code is not closed")
	}
	return b.String()
}

// TestReportOfIncident: the report answers what is wrong, where it began, what differs and what to do.
func TestReportOfIncident(t *testing.T) {
	d, err := dossier.Collect(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, "a-auth-revision-replay")}},
		dossier.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := write(t, d)
	for _, want := range []string{"# etcd-medic: NOT HEALTHY, data-divergence", "**Keep:** node3",
		"**Loses:** nothing\n", "A01 at entry 77 of term 2", "| 29 | 54 | 43 |", "! first break 77",
		"| A04-1 | critical | node1 | 103 |",
		"| key | 74 | 50 | 11 |", "`/app/orders/base/000` | mod 55", "and 10 more keys", "etcd-medic compare node1=",
		"## By hand instead, without etcd-medic\n", "1. make node3 the leader",
		"No file changed while it was read."} {
		if !strings.Contains(s, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

// TestSayNoMoreThanIsKnown: one damaged backup is nothing to keep, and members that were not compared are named.
func TestSayNoMoreThanIsKnown(t *testing.T) {
	for name, want := range map[string]string{"o-backup-bit-flip": "",
		"f-bbolt-page-corruption": "* Not compared: keys of node1"} {
		d, err := dossier.Collect(t.Context(), []evidence.Spec{{Where: evidencetest.Incident(t, name)}},
			dossier.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := write(t, d)
		if !strings.Contains(s, want) || strings.Contains(s, "**Keep:**") != (want != "") {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// TestHostileText: texts cannot become markup, mentions or the end of a block of code, and nothing makes the report too
// long.
func TestHostileText(t *testing.T) {
	bad := "x```\n# head <script>alert(1)</script> @admin [link](http://x) | `y` \u202e\x07"
	r := &compare.Report{Verdict: compare.Verdict{Health: check.Unhealthy, Class: "data-divergence", Summary: bad}}
	fenced := shell.Format("etcd-medic history {} SOURCE", "```$(: >RAN)```"+strings.Repeat("k", 4000))
	r.Next = append(r.Next, compare.Next{Text: bad, Command: fenced})
	for i := range 3000 {
		r.Findings = append(r.Findings, check.Finding{ID: fmt.Sprintf("K01-%d", i), Severity: check.Error,
			Title: bad + strings.Repeat("long ", 500)})
		r.Next = append(r.Next, compare.Next{Text: bad, Command: shell.Format("etcd-medic explain {}", bad)})
	}
	diff := dossier.Difference{Bucket: "key", Members: []string{bad}, Differ: 1, Rest: []string{bad}, Shared: []int{0},
		Cells: []dossier.Cells{{Mod: []int64{0}, Create: []int64{0}, Version: []int64{0}, Len: []int{0},
			Lease: []string{""}, SHA: []string{""}}}}
	s := write(t, &dossier.Dossier{Report: r, Differences: []dossier.Difference{diff}})
	if !strings.Contains(s, "\n"+fenced.String()+"\n") {
		t.Error("a command is changed or cut: it does something else when it is pasted")
	}
	lines, _ := outside(s)
	for n, l := range lines {
		if strings.Contains(l, "<script") || strings.Contains(l, "@admin") || strings.Contains(l, "[link]") ||
			strings.HasPrefix(l, "# head") || strings.ContainsAny(l, "\u202e\x07") {
			t.Errorf("line %d: %s", n, l)
		}
	}
	if !strings.Contains(s, "more") {
		t.Error("the report does not say that it left findings out")
	}
}
