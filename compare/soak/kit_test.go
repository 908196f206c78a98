package soak

import (
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

func TestSameSeesContentOnly(t *testing.T) {
	src := synthetic(t, 0)[0]
	dir := evidencetest.Copy(t, src)
	rows, err := rows(dir, "meta")
	if err != nil || len(rows) == 0 {
		t.Fatal(err)
	}
	if err := editDB(dir, rows[0].put(rows[0].value)); err != nil { // other pages, the same rows
		t.Fatal(err)
	}
	if !same(src, dir, true) {
		t.Error("the same rows count as a change")
	}
	if err := editDB(dir, rows[0].put(rows[0].value+"x")); err != nil {
		t.Fatal(err)
	}
	if same(src, dir, true) {
		t.Error("a changed row is not seen")
	}
	if files, err := segmentFiles(dir); err != nil || flip(files[0], 100) != nil || same(src, dir, true) {
		t.Errorf("a flipped bit is not seen (%v)", err)
	}
}
