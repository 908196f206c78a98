package check_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/casetest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

const laterMove = 20

// movedMember writes a data dir whose log gives its member other peer URLs in entry laterMove, and whose database has
// them.
func movedMember(t *testing.T, index uint64) string {
	t.Helper()
	h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
	h.Found(false, a1)
	id := func(index uint64) uint64 { return clustertest.RequestID(a1, 1763000000000, index) }
	for i := uint64(2); i <= laterMove+2; i++ {
		switch i {
		case 2:
			h.Publish(2, i, a1, id(i))
		case laterMove:
			h.Conf(2, i, clustertest.MoveMember(a1, id(i)))
		default:
			h.Put(2, i, id(i), fmt.Sprintf("k%d", i), "v", i < laterMove)
		}
	}
	h.State(2, a1, laterMove+2)
	h.Row("members", "a1", `{"id":161,"peerURLs":["http://127.0.0.1:9"],"name":"`+clustertest.HandName(a1)+
		`","clientURLs":["http://127.0.0.1:2379"]}`)
	h.Row("cluster", "clusterVersion", "3.6.0")
	return h.Close(index, 2)
}

// TestRowOfALaterEntry: peer URLs that an entry above the consistent index gives were not edited: the index is too low.
func TestRowOfALaterEntry(t *testing.T) {
	if r := run(t, inputOf(t, movedMember(t, laterMove)), "M16"); r.Outcome != check.Holds {
		t.Errorf("at the entry: %s %+v", r.Outcome, r.Findings)
	}
	r := run(t, inputOf(t, movedMember(t, laterMove-1)), "M16")
	if len(r.Findings) != 1 {
		t.Fatalf("one entry before: %s %+v", r.Outcome, r.Findings)
	}
	f := r.Findings[0]
	if !f.Is(check.KindMemberRowAboveIndex) || f.At.Index != laterMove || f.Class != check.ClassLatentDivergence ||
		len(f.Remedy) > 0 {
		t.Errorf("%+v", f)
	}
}

// TestStartOfALaterEntry: the same for what a member published.
func TestStartOfALaterEntry(t *testing.T) {
	in := inputOf(t, movedMember(t, laterMove))
	in.Replay.Survey.Starts[a1] = []replay.Start{
		{Index: 2, Name: "other", ClientURLs: []string{"http://127.0.0.1:1"}},
		{Index: laterMove + 1, Name: clustertest.HandName(a1), ClientURLs: []string{"http://127.0.0.1:2379"}}}
	r := run(t, in, "M16")
	var fields []string
	for _, f := range r.Findings {
		if !f.Is(check.KindMemberRowAboveIndex) || f.At.Index != laterMove+1 {
			t.Errorf("%+v", f)
		}
		fields = append(fields, f.Evidence[0].Field)
	}
	if !slices.Equal(fields, []string{"name", "client URLs"}) {
		t.Errorf("findings about %v", fields)
	}
}

// TestPromotionInALostEnd: up to 3.4 the database shows a promotion whose entry the log lost with its end.
func TestPromotionInALostEnd(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		damage  func(t *testing.T, dir string)
		want    check.Outcome
	}{
		"whole":          {"3.4.0", nil, check.Holds},
		"torn":           {"3.4.0", tornTail, check.NotChecked},
		"torn, with 3.6": {"3.6.0", tornTail, check.Violated},
		"one meta page":  {"3.4.0", oneMeta, check.NotChecked},
	} {
		t.Run(name, func(t *testing.T) {
			const last = 12
			h := clustertest.NewHand(t, t.TempDir(), "node1", a1, 0xc1)
			h.Found(false, a1)
			id := func(index uint64) uint64 { return clustertest.RequestID(a1, 1763000000000, index) }
			for i := uint64(2); i < last; i++ {
				h.Put(2, i, id(i), fmt.Sprintf("k%d", i), "v", true)
				if i == 4 {
					i++
					h.Conf(2, i, clustertest.AddLearner(b1, id(i)))
				}
			}
			h.State(2, a1, last-1)
			h.Conf(2, last, clustertest.Promote(b1, id(last)))
			h.Member(a1, false, true)
			h.Member(b1, false, true)
			h.Row("cluster", "clusterVersion", c.version)
			dir := h.Close(last-1, 2)
			if c.version == "3.4.0" {
				casetest.EditDB(t, dir, remove("meta", "term"))
			}
			if c.damage != nil {
				c.damage(t, dir)
			}
			if r := run(t, inputOf(t, dir), "M07"); r.Outcome != c.want {
				t.Errorf("%s %s %+v", r.Outcome, r.Reason, r.Findings)
			}
		})
	}
}

// oneMeta damages the older meta page of a database.
func oneMeta(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "member", "snap", "db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := binary.LittleEndian.Uint32(b[16+8:])
	txid := func(at uint32) uint64 { return binary.LittleEndian.Uint64(b[at+16+48:]) }
	older := uint32(0)
	if txid(page) < txid(0) {
		older = page
	}
	b[older+16+20] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
