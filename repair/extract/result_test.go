package extract

import (
	"errors"
	"fmt"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/rebuild"
)

// TestShort: each loss alone makes an extract short, and nothing else does.
func TestShort(t *testing.T) {
	for name, c := range map[string]struct {
		r             Result
		short, behind bool
	}{
		"whole":       {r: Result{Records: 1, Log: &rebuild.CaughtUp{}, Cluster: &ClusterCopy{Different: 1, Kept: 1}}},
		"damage":      {r: Result{Lost: Lost{Damage: []Damage{{}}}}, short: true},
		"trailer":     {r: Result{Lost: Lost{Trailer: "mismatch"}}, short: true},
		"undecodable": {r: Result{Lost: Lost{Undecodable: 1}}, short: true},
		"no value":    {r: Result{Lost: Lost{NoValueCount: 1}}, short: true},
		"not found":   {r: Result{Lost: Lost{NotFound: []check.Bytes{nil}}}, short: true},
		"left out":    {r: Result{LeftOut: []LeftOut{{}}}, short: true},
		"failed":      {r: Result{Cluster: &ClusterCopy{Failed: 1}}, short: true},
		"conflicts":   {r: Result{Cluster: &ClusterCopy{Conflicts: 1}}, short: true},
		"log missing": {r: Result{Log: &rebuild.CaughtUp{Missing: 1}}, behind: true},
	} {
		if c.r.Short() != c.short || c.r.Behind() != c.behind {
			t.Errorf("%s: short %v, behind %v", name, c.r.Short(), c.r.Behind())
		}
	}
}

// TestDamaged: damage is listed once, up to a bound, and then counted; other errors are returned.
func TestDamaged(t *testing.T) {
	var r Result
	other := errors.New("other")
	if err := r.damaged(nil); err != nil || len(r.Lost.Damage) != 0 {
		t.Errorf("%v %+v", err, r)
	}
	if err := r.damaged(other); err != other || len(r.Lost.Damage) != 0 {
		t.Errorf("%v %+v", err, r)
	}
	at := func(page int) *dumpdb.DamageError {
		return &dumpdb.DamageError{Place: dumpdb.Place{Page: uint64(page)}, Bucket: "key", Kind: dumpdb.DamagePage}
	}
	for range 2 {
		err1, err2 := r.damaged(fmt.Errorf("page: %w", at(1))), r.damaged(dumpdb.Damages{at(2), at(3)})
		if err := errors.Join(err1, err2); err != nil {
			t.Error(err)
		}
	}
	if d := r.Lost.Damage; len(d) != 3 || d[0].Page != 1 || d[2].Page != 3 || d[0].Kind != string(dumpdb.DamagePage) {
		t.Errorf("%+v", d)
	}
	for page := range maxListed {
		_ = r.damaged(at(4 + page)) // is nil, as above
	}
	if l := r.Lost; len(l.Damage) != maxListed || l.MoreDamage != 3 {
		t.Errorf("%d listed, %d more", len(l.Damage), l.MoreDamage)
	}
}

// TestLeave lists the first 20 keys of each reason and counts all.
func TestLeave(t *testing.T) {
	var r Result
	for i := range 25 {
		r.leave("one", fmt.Append(nil, i))
	}
	r.leave("two", []byte("k"))
	if l := r.LeftOut; len(l) != 2 || l[0].Count != 25 || len(l[0].Keys) != 20 || string(l[0].Keys[19]) != "19" ||
		l[1].Reason != "two" || l[1].Count != 1 || string(l[1].Keys[0]) != "k" {
		t.Errorf("%+v", l)
	}
}
