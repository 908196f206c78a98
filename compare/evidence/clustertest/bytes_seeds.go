package clustertest

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/raft/v3/raftpb"
)

// BytesSeeds are scripts for WriteBytes: sound members, and some that are not.
func BytesSeeds(tb testing.TB) [][]byte {
	tb.Helper()
	marshal := func(m interface{ Marshal() ([]byte, error) }) []byte {
		b, err := m.Marshal()
		if err != nil {
			tb.Fatal(err)
		}
		return b
	}
	step := BytesStep
	row := func(bucket byte, key, value []byte) []byte {
		return step(BytesRow, slices.Concat([]byte{bucket, byte(len(key))}, key, value)...)
	}
	var founded []byte
	for id := range uint64(3) {
		founded = append(founded, step(BytesEntry, append([]byte{1, 1},
			marshal(&raftpb.ConfChange{Type: raftpb.ConfChangeAddNode, NodeID: 7 + id,
				Context: []byte(`{"id":7,"peerURLs":["http://127.0.0.1:2380"],"name":"n"}`)})...)...)...)
	}
	put := marshal(&pb.InternalRaftRequest{Header: &pb.RequestHeader{ID: 7<<48 | 5},
		Put: &pb.PutRequest{Key: []byte("k"), Value: []byte("v")}})
	state := step(BytesRecord, append([]byte{3},
		marshal(&raftpb.HardState{Term: 1, Vote: 7, Commit: 4})...)...)
	kv := marshal(&mvccpb.KeyValue{Key: []byte("k"), Value: []byte("v"), CreateRevision: 2, ModRevision: 2, Version: 1})
	rev := append(append(binary.BigEndian.AppendUint64(nil, 2), '_'), make([]byte, 8)...)
	sound := slices.Concat(founded, step(BytesEntry, append([]byte{0, 1}, put...)...), state,
		row(0, rev, kv), row(1, []byte("consistent_index"), binary.BigEndian.AppendUint64(nil, 4)),
		row(6, []byte("7"), []byte(`{"id":7,"peerURLs":["http://127.0.0.1:2380"],"name":"n"}`)))
	v2 := []byte(`{"Root":{"Path":"/","Children":{"0":{"Path":"/0","Children":{"members":{"Path":"/0/members",` +
		`"Children":{"7":{"Path":"/0/members/7","Children":{}}}}}},"1":{"Path":"/1","Children":{}}}}}`)
	seeds := [][]byte{nil, sound, founded, slices.Concat(founded, step(BytesSnap, v2...), state)}
	for _, bad := range [][]byte{step(BytesPatch, 1, 0, 0, 0x20, 0x10, 0xff, 0xff, 0xff, 0xff),
		step(BytesPatch, 0, 0, 0, 0, 80, 1, 2, 3), step(BytesCut, 1, 0, 0, 0x30, 0),
		step(BytesCut, 0, 0, 0, 0, 100), step(BytesFile, 1, 'x'),
		step(BytesFile, append([]byte{3}, bytes.Repeat([]byte{0}, 64)...)...),
		step(BytesRecord, 5, 16, 2, 24, 1), step(BytesEntry, 1, 2, 8, 1, 16, 1, 24, 9),
		row(1, []byte("scheduledCompactRev"), rev[:3]), row(2, rev[:8], []byte{8, 1, 16, 0xff, 0xff, 0xff, 0x0f}),
		step(BytesFile, append([]byte{10}, `{"memberID":"7","clusterID":"9","lastIndex":4}`...)...)} {
		seeds = append(seeds, append(slices.Clone(sound), bad...))
	}
	return seeds
}
