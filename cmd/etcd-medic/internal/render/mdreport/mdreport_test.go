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

func write(t *testing.T, d *dossier.Dossier) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, d); err != nil {
		t.Fatal(err)
	}
	if b.Len() > MaxSize {
		t.Errorf("%d bytes", b.Len())
	}
	if n := strings.Count(b.String(), "```"); n%2 != 0 {
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
		"No file changed while it was read."} {
		if !strings.Contains(s, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

// TestHostileText: texts cannot become markup, mentions or the end of a block of code, and nothing makes the report too
// long.
func TestHostileText(t *testing.T) {
	bad := "x```\n# head <script>alert(1)</script> @admin [link](http://x) | `y` \u202e\x07"
	yes := false
	r := &compare.Report{Verdict: compare.Verdict{Healthy: &yes, Class: "data-divergence", Summary: bad}}
	for i := range 3000 {
		r.Findings = append(r.Findings, check.Finding{ID: fmt.Sprintf("K01-%d", i), Severity: check.Error,
			Title: bad + strings.Repeat("long ", 500)})
		r.Next = append(r.Next, compare.Next{Text: bad, Command: shell.Format("etcd-medic explain {}", bad)})
	}
	diff := dossier.Difference{Bucket: "key", Members: []string{bad}, Differ: 1, Rest: []string{bad}, Shared: []int{0},
		Cells: []dossier.Cells{{Mod: []int64{0}, Create: []int64{0}, Version: []int64{0}, Len: []int{0},
			Lease: []string{""}, SHA: []string{""}}}}
	s := write(t, &dossier.Dossier{Report: r, Differences: []dossier.Difference{diff}})
	inCode := false
	for n, l := range strings.Split(s, "\n") {
		if strings.HasPrefix(l, "```") {
			inCode = !inCode
			continue
		}
		if inCode {
			continue
		}
		if strings.Contains(l, "<script") || strings.Contains(l, "@admin") || strings.Contains(l, "[link]") ||
			strings.HasPrefix(l, "# head") || strings.ContainsAny(l, "\u202e\x07") {
			t.Errorf("line %d: %s", n+1, l)
		}
	}
	if !strings.Contains(s, "more") {
		t.Error("the report does not say that it left findings out")
	}
}
