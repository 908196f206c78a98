package compare

import (
	"slices"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// TestDamagedLogInHistory: what a log has lost is said with the entries, of many places the first ones.
func TestDamagedLogInHistory(t *testing.T) {
	at := func(from, to uint64) *dumplog.DamageError {
		return &dumplog.DamageError{Pos: dumplog.Pos{Segment: "1.wal", Offset: 16}, Kind: dumplog.DamageTornTail,
			LostFrom: from, LostTo: to}
	}
	m := &evidence.Member{Source: &evidence.Source{Name: "a"}}
	m.WAL.Summary.Damage = []*dumplog.DamageError{at(0, 0), at(7, 0), at(7, 7), at(7, 9)}
	var h KeyHistory
	h.logDamage(m)
	want := []string{"log: 1.wal@0x10: torn-tail", "log: 1.wal@0x10: torn-tail (entries from 7 on)",
		"log: 1.wal@0x10: torn-tail (entry 7)", "log: 1.wal@0x10: torn-tail (entries 7 to 9)"}
	if got := h.Damage["a"]; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for len(m.WAL.Summary.Damage) < maxLogDamage+3 {
		m.WAL.Summary.Damage = append(m.WAL.Summary.Damage, at(0, 0))
	}
	h = KeyHistory{}
	h.logDamage(m)
	if got := h.Damage["a"]; len(got) != maxLogDamage+1 || got[maxLogDamage] != "3 more damaged places of the log" {
		t.Errorf("%q", got)
	}
}
