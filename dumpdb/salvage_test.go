package dumpdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// A file without any meta page still gives its records.
func TestOpenSalvage(t *testing.T) {
	for _, s := range sources(t) {
		if s.name() != "l-compaction-skew/node1" {
			continue
		}
		want := map[Rev]string{}
		for r, err := range open(t, s.path).Revisions() {
			fatal(t, err)
			want[r.Rev] = string(r.Raw)
		}
		path := evidencetest.Copy(t, s.path)
		b, err := os.ReadFile(path)
		fatal(t, err)
		clear(b[:8192])
		fatal(t, os.WriteFile(path, b, 0o600))
		db, err := OpenSalvage(t.Context(), path)
		fatal(t, err)
		defer db.Close()
		found := 0
		for r, err := range db.SalvageRevisions(context.Background()) {
			var d *DamageError
			if err != nil && !errors.As(err, &d) {
				t.Fatal(err)
			}
			if raw, ok := want[r.Rev]; ok && err == nil {
				found++
				if raw != string(r.Raw) || r.Origin != OriginUnreachable {
					t.Errorf("%s: %s", r.Rev, r.Origin)
				}
			}
		}
		if found != len(want) || db.PageSize() != 4096 {
			t.Errorf("%d of %d records found, page size %d", found, len(want), db.PageSize())
		}
		r, err := db.Check(context.Background())
		if err != nil || len(r.Damage) < 2 || r.Complete {
			t.Errorf("%+v %v", r, err)
		}
	}
}

// What salvage finds in the damaged member is never contradicted by the sound ones.
func TestSalvageAgainstSoundMember(t *testing.T) {
	dir := evidencetest.Incident(t, "f-bbolt-page-corruption")
	want := map[Rev]string{}
	for r, err := range open(t, filepath.Join(dir, "node2/member/snap/db")).Revisions() {
		fatal(t, err)
		want[r.Rev] = string(r.Raw)
	}
	n, damage := map[Origin]int{}, 0
	for r, err := range open(t, filepath.Join(dir, "node1/member/snap/db")).SalvageRevisions(context.Background()) {
		if err != nil {
			damage++
			continue
		}
		n[r.Origin]++
		if raw, ok := want[r.Rev]; r.Err == nil && (!ok || raw != string(r.Raw)) {
			t.Errorf("%s %s differs from the sound member", r.Origin, r.Rev)
		}
	}
	if damage != 1 || n[OriginLive]+n[OriginOlder] != 305-27 {
		t.Errorf("%v, %d damaged places", n, damage)
	}
}

// TestSalvageOfAShrinkingFile: records that can no longer be read are damage, and never left out in silence.
func TestSalvageOfAShrinkingFile(t *testing.T) {
	sc := &script{t: t}
	sc.create(&datadriven.TestData{Input: "many 12 2.0 /k 900\ncommit\nmany 2 14.0 /k 901\ncommit\n" +
		`drop key "\x00\x00\x00\x00\x00\x00\x00\x02_\x00\x00\x00\x00\x00\x00\x00\x00"`})
	b, err := os.ReadFile(sc.path)
	fatal(t, err)
	whole := 0
	for left := 400; left >= 0; left-- {
		db, err := NewReader(&shrinking{b, left + 2}, int64(len(b)))
		fatal(t, err)
		rows, damage := 0, 0
		for r, err := range db.SalvageRevisions(t.Context()) {
			switch {
			case err != nil:
				damage++
			case r.Rev == Rev{} || len(r.KV.Value) < 900:
				t.Errorf("%d reads: %+v", left, r)
			default:
				rows++
			}
		}
		whole = max(whole, rows)
		if rows < whole && damage == 0 {
			t.Errorf("%d reads: %d rows of %d and no damage", left, rows, whole)
		}
	}
	if whole != 14 {
		t.Errorf("%d records", whole)
	}
}

// TestTrailerOfAShrinkingFile: a sum of bytes that can no longer be read is an error.
func TestTrailerOfAShrinkingFile(t *testing.T) {
	b := lineBytes(t)["o-backup-good/backup"]
	for left := range 4 {
		file := &shrinking{b, 1 << 30}
		db, err := NewReader(file, int64(len(b)))
		fatal(t, err)
		file.left = left
		if got, err := db.TrailerOf("x"); (err == nil) != (left > 0) || (got.State == "mismatch") != (left > 0) {
			t.Errorf("the trailer after %d reads: %+v, %v", left, got, err)
		}
		file.left = 0
		if got, err := db.Trailer(); err == nil || got != (Trailer{}) {
			t.Errorf("the whole file: %+v, %v", got, err)
		}
	}
}

// TestTrailerOfACutFile: of a file that was cut after it was opened nothing is said about its sum.
func TestTrailerOfACutFile(t *testing.T) {
	whole := lineBytes(t)["o-backup-good/backup"]
	for _, left := range []int{0, 4096, len(whole) - 33} {
		path := filepath.Join(t.TempDir(), "backup.db")
		fatal(t, os.WriteFile(path, whole, 0o600))
		db := open(t, path)
		if got, err := db.Trailer(); err != nil || got.State != "match" || got.Expected != got.Computed ||
			len(got.Computed) != 64 {
			t.Errorf("the whole file: %+v, %v", got, err)
		}
		fatal(t, os.Truncate(path, int64(left)))
		if got, err := db.Trailer(); !errors.Is(err, errShort) || got != (Trailer{}) {
			t.Errorf("%d bytes left: %+v, %v", left, got, err)
		}
	}
}
