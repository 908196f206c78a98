package dumplog_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
)

// truthFile is what truth.json says about logs.
type truthFile struct {
	Verdict struct {
		BadNode string `json:"bad_node"`
		Offset  int64  `json:"offset_of_damaged_record"`
		Lost    uint64 `json:"lost_entry_index"`
	} `json:"verdict"`
	Nodes map[string]struct {
		WAL walTruth `json:"wal"`
	} `json:"nodes"`
}

type walTruth struct {
	ClusterID   dumplog.ID        `json:"cluster_id"`
	MemberID    dumplog.ID        `json:"member_id"`
	FirstIndex  uint64            `json:"first_index"`
	LastIndex   uint64            `json:"last_index"`
	LastTerm    uint64            `json:"last_term"`
	HardState   dumplog.HardState `json:"hard_state"`
	EntryTypes  map[string]int    `json:"entry_types"`
	RecordTypes map[string]int    `json:"record_types"`
	Segments    []segmentTruth    `json:"segments"`
}

type segmentTruth struct {
	Name       string `json:"name"`
	FirstEntry uint64 `json:"first_entry"`
	LastEntry  uint64 `json:"last_entry"`
	DataEnd    int64  `json:"data_end"`
}

func readTruth(t testing.TB, incident string) truthFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(evidencetest.Root(t), "testdata", "incidents", incident, "truth.json"))
	must(t, err)
	var f truthFile
	must(t, json.Unmarshal(b, &f))
	return f
}
