package render

import (
	"bytes"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/shell"
)

// TestGrouped: one fact of several members and things is said once, and nothing of it is left out.
func TestGrouped(t *testing.T) {
	var all []check.Finding
	n := 0
	for _, m := range []string{"m1", "m2", "m3"} {
		for _, id := range []string{"1a49", "48b9", "9050"} {
			n++
			all = append(all, check.Finding{ID: "M07-" + string(rune('0'+n)), Check: "M07", Severity: check.Error,
				Members: []string{m},
				Title:   m + ": member " + id + " is in bucket members, raft does not know it", Explanation: "the same",
				Evidence: []check.Evidence{{Member: m, Bucket: "members", Key: []byte(id), Observed: "in members",
					Expected: "none", Show: shell.Format("etcd-medic dumpdb {} members", m)}}})
		}
	}
	all = append(all,
		check.Finding{ID: "A04-1", Check: "A04", Severity: check.Critical, Members: []string{"m1"},
			Title: "m1 dropped 43 entries", Explanation: "why"},
		check.Finding{ID: "A04-2", Check: "A04", Severity: check.Critical, Members: []string{"m2"},
			Title: "m2 dropped 21 entries", Explanation: "why"},
		check.Finding{ID: "A04-3", Check: "A04", Severity: check.Critical, Members: []string{"m3"},
			Title: "m3 dropped 21 entries", Explanation: "another reason"},
		check.Finding{ID: "K05-1", Check: "K05", Severity: check.Info, Members: []string{"m1", "m2"},
			Title: "files differ in size",
			Evidence: []check.Evidence{{Member: "m1", File: "db", Field: "size", Observed: "2048"},
				{Member: "m2", File: "db", Field: "size", Observed: "4096"}}})
	var b bytes.Buffer
	p := newPage(&b, Options{Width: 120})
	findingsSection{page: p}.write(all)
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  M07-1 to M07-9  error  m1, m2 and m3: member 1a49 is in bucket members, raft does not know it; the same " +
			"holds for 48b9",
		"    - m1, m2 and m3 members/9050: in members\n", "    $ etcd-medic dumpdb m1 members\n",
		"  A04-1, A04-2  critical  m1 dropped 43 entries; m2 dropped 21 entries\n", "  A04-3  critical  m3 dropped " +
			"21 entries\n",
		"  K05-1  info  files differ in size (m1 and m2)\n    - db size: m1 2.0 KiB; m2 4.0 KiB\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not there", want)
		}
	}
	if strings.Count(b.String(), "the same\n") != 1 || t.Failed() {
		t.Errorf("\n%s", b.String())
	}
}

// TestGroupedRemedies: what to do may name each member of a fact; every such remedy is shown.
func TestGroupedRemedies(t *testing.T) {
	var all []check.Finding
	for _, m := range []string{"m1", "m2"} {
		all = append(all, check.Finding{ID: "X05-" + m[1:], Check: "X05", Severity: check.Error, Members: []string{m},
			Title: m + ": the copy is torn", Explanation: "the same", Remedy: []check.Remedy{{
				Text: "copy " + m + " again", Command: shell.Format("etcd-medic collect -o {}", m)}}})
	}
	all = append(all, check.Finding{ID: "X05-3", Check: "X05", Severity: check.Error, Members: []string{"m3"},
		Title: "m3: the copy is torn", Explanation: "the same", Remedy: []check.Remedy{{Text: "leave m3 out"}}})
	var b bytes.Buffer
	p := newPage(&b, Options{Width: 120})
	findingsSection{page: p}.write(all)
	if err := p.flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  X05-1, X05-2  error  m1 and m2: the copy is torn\n", "remedy: copy m1 again\n",
		"$ etcd-medic collect -o m1\n", "remedy: copy m2 again\n", "$ etcd-medic collect -o m2\n",
		"  X05-3  error  m3: the copy is torn\n", "remedy: leave m3 out\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not there:\n%s", want, b.String())
		}
	}
}
