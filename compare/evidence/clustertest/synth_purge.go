package clustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// snapshot writes the .snap file and its record, as a server does for a snapshot at index.
func (s Synth) snapshot(tb testing.TB, w *wal.WAL, walDir string, term, index uint64) {
	tb.Helper()
	conf := raftpb.ConfState{}
	for i := range s.Members {
		if s.Learners[i] {
			conf.Learners = append(conf.Learners, synthMember+uint64(i))
		} else {
			conf.Voters = append(conf.Voters, synthMember+uint64(i))
		}
	}
	dir := filepath.Join(filepath.Dir(walDir), "snap")
	synthOK(tb, os.MkdirAll(dir, 0o700))
	synthOK(tb, snap.New(zap.NewNop(), dir).SaveSnap(raftpb.Snapshot{Data: s.v2Store(),
		Metadata: raftpb.SnapshotMetadata{Index: index, Term: term, ConfState: conf}}))
	synthOK(tb, w.SaveSnapshot(walpb.Snapshot{Index: index, Term: term, ConfState: &conf}))
}

// v2Store returns the JSON of a v2 store with the members, in the form of etcd's api/v2store.
func (s Synth) v2Store() []byte {
	dir := func(path, children string) string {
		return fmt.Sprintf(`{"Path":%q,"CreatedIndex":1,"ModifiedIndex":1,"ExpireTime":"0001-01-01T00:00:00Z",`+
			`"Value":"","Children":{%s}}`, path, children)
	}
	leaf := func(path, value string) string {
		return fmt.Sprintf(`{"Path":%q,"CreatedIndex":1,"ModifiedIndex":1,"ExpireTime":"0001-01-01T00:00:00Z",`+
			`"Value":%q,"Children":null}`, path, value)
	}
	members := ""
	for i := range s.Members {
		at := fmt.Sprintf("/0/members/%x", synthMember+i)
		raft := fmt.Sprintf(`{"peerURLs":["http://127.0.0.1:%d"]}`, 2380+2*i)
		if s.Learners[i] {
			raft = fmt.Sprintf(`{"peerURLs":["http://127.0.0.1:%d"],"isLearner":true}`, 2380+2*i)
		}
		attr := fmt.Sprintf(`{"name":"node%d"}`, i+1)
		if s.publishedBefore(i, s.Purged) {
			attr = fmt.Sprintf(`{"name":"node%d","clientURLs":["http://127.0.0.1:%d"]}`, i+1, 2379+2*i)
		}
		if i > 0 {
			members += ","
		}
		members += fmt.Sprintf("%q:", fmt.Sprintf("%x", synthMember+i)) + dir(at, `"attributes":`+
			leaf(at+"/attributes", attr)+`,"raftAttributes":`+leaf(at+"/raftAttributes", raft))
	}
	root := dir("/", `"0":`+dir("/0", `"members":`+dir("/0/members", members))+`,"1":`+dir("/1", ""))
	return []byte(`{"Root":` + root + `,"WatcherHub":{"EventHistory":{"Queue":{"Events":null,"Size":0,"Front":0,` +
		`"Back":0,"Capacity":1000},"StartIndex":0,"LastIndex":0,"DuplicateEvents":0}},"CurrentIndex":1,"Stats":{},"CurrentVersion":2}`)
}

// purge removes the segments that end at or below index.
func purge(tb testing.TB, dir string, index uint64) {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	synthOK(tb, err)
	for i := 0; i+1 < len(files); i++ {
		var seq, first uint64
		_, err := fmt.Sscanf(filepath.Base(files[i+1]), "%016x-%016x.wal", &seq, &first)
		synthOK(tb, err)
		if first <= index {
			synthOK(tb, os.Remove(files[i]))
		}
	}
}

// publishedBefore reports whether the log has a start of the member before the put.
func (s Synth) publishedBefore(member, put int) bool {
	for at, m := range s.Starts {
		if m == member && at < put {
			return true
		}
	}
	return false
}
