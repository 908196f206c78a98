package htmlreport

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
)

// hostileChecklist is a plan whose texts try to leave the text that they are.
func hostileChecklist() *render.Checklist {
	bad := "<script>window.pwned=1</script>\u202e\x1b[31m"
	return &render.Checklist{Tool: "etcd-medic", Version: bad, Digest: bad, Summary: bad, Way: "live", WayWhy: bad,
		Keep: bad, KeepWhy: bad, Loses: bad, Lost: [][4]string{{bad, bad, bad, bad}},
		Unproven: []string{bad}, Save: []string{bad}, Cautions: []string{bad}, State: bad, Other: []string{bad},
		Next:    []string{bad},
		Members: []render.ChecklistMember{{Name: bad, ID: "1", Action: bad, Why: bad}},
		Runs:    []render.ChecklistRun{{Title: bad, State: bad, Begun: time.Unix(1, 0)}},
		Steps: []render.ChecklistStep{{ID: bad, Title: bad, Member: bad, Precondition: bad, Effect: bad, Undo: bad,
			Until: bad, State: "done", Detail: bad, At: time.Unix(2, 0),
			Commands: []render.ChecklistCommand{{On: bad, Run: bad, Note: bad}}},
			{Title: "the second step", Undo: "none needed"}}}
}

// TestChecklistStaysText: texts of a plan are text, under the same policy as the report, and one plan gives one page.
func TestChecklistStaysText(t *testing.T) {
	var a, b bytes.Buffer
	if err := WriteChecklist(&a, hostileChecklist()); err != nil {
		t.Fatal(err)
	}
	if err := WriteChecklist(&b, hostileChecklist()); err != nil {
		t.Fatal(err)
	}
	html := a.String()
	if html != b.String() {
		t.Error("two pages of one plan differ")
	}
	for _, bad := range []string{"<script>window", "\u202e", "\x1b"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	dataOf(t, html)
	if !strings.Contains(html, "1 of 2 steps are done") || strings.Count(html, ` checked>`) != 1 ||
		!strings.Contains(html, "1970-01-01 00:00:02 UTC") {
		t.Error("the steps are not ticked")
	}
}
