package compare

import (
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// TestHistoryIsBounded: of a key with more records than there is room for, the newest are listed and the others
// counted. Values beyond the room for them are length and digest.
func TestHistoryIsBounded(t *testing.T) {
	dir := filepath.Join(evidencetest.Incident(t, "a-auth-revision-replay"), "node3")
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Name: "n", Where: dir}}, evidence.Options{Deep: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	list := func(b historyBound) (*KeyHistory, []KeyRecord) {
		h := &KeyHistory{Key: []byte("/app/orders/base/001"), Records: map[string][]KeyRecord{}}
		if err := h.records(t.Context(), set.Members[0], &b); err != nil {
			t.Fatal(err)
		}
		return h, h.Records["n"]
	}
	h, all := list(historyBound{records: 2, values: 1 << 10, shown: true})
	if len(all) != 2 || h.RecordsOmitted != nil || all[0].Value.Bytes == nil || all[1].Value.Bytes == nil {
		t.Fatalf("%+v", h)
	}
	h, newest := list(historyBound{records: 1, values: all[1].Value.Len, shown: true})
	if len(newest) != 1 || newest[0].Revision != all[1].Revision || h.RecordsOmitted["n"] != 1 ||
		newest[0].Value.Bytes == nil {
		t.Errorf("%+v", h)
	}
	if _, some := list(historyBound{records: 2, values: all[0].Value.Len, shown: true}); some[0].Value.Bytes == nil ||
		some[1].Value.Bytes != nil || some[1].Value.Digest != all[1].Value.Digest {
		t.Errorf("%+v", some)
	}
}
