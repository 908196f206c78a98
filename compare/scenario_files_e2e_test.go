//go:build e2e

package compare_test

import (
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// restore34 gives every member a data dir as etcdctl 3.4 makes it of a 3.5 backup: etcdutl's, with the term of the old
// cluster in it and without the keys that 3.4 does not know.
func (s *scenario) restore34(args []string) {
	s.c.StopAll()
	var initial []string
	for i := range s.c.Size() {
		initial = append(initial, s.c.Name(i)+"="+s.c.PeerURL(i))
	}
	tool := strings.Replace(clustertest.Server(s.T, s.version), "etcd-"+s.version, "etcdutl-3.6", 1)
	for i := range s.c.Size() {
		s.c.Wipe(i)
		out, err := exec.CommandContext(s.Context(), tool, "snapshot", "restore", s.backup, "--name", s.c.Name(i),
			"--data-dir", s.c.DataDir(i),
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-token", "clustertest",
			"--initial-advertise-peer-urls", s.c.PeerURL(i)).CombinedOutput()
		if err != nil {
			s.Fatalf("%s: %v\n%s", s.line, err, out)
		}
		db, err := bolt.Open(filepath.Join(s.c.DataDir(i), "member", "snap", "db"), 0o600,
			&bolt.Options{NoFreelistSync: true})
		s.must(err)
		s.must(db.Update(func(tx *bolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			for _, k := range []string{"storageVersion", "confState"} {
				if err := meta.Delete([]byte(k)); err != nil {
					return err
				}
			}
			return meta.Put([]byte("term"), binary.BigEndian.AppendUint64(nil, uint64(s.number(args, 0, 9))))
		}))
		s.must(db.Close())
	}
}

// keepDB sets a copy of the database of a stopped member aside, putDB puts it into the collected copy of that member.
func (s *scenario) keepDB(i int) {
	s.copyFile(filepath.Join(s.c.DataDir(i), "member", "snap", "db"), filepath.Join(s.keptDir(), s.c.Name(i)))
}

func (s *scenario) putDB(args []string) {
	s.copyFile(filepath.Join(s.keptDir(), args[0]), s.dbFile(args[0]))
}

// keptDir is made at the first use.
func (s *scenario) keptDir() string {
	if s.kept == "" {
		s.kept = s.TempDir()
	}
	return s.kept
}

func (s *scenario) copyFile(from, to string) {
	in, err := os.Open(from)
	s.must(err)
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	s.must(err)
	_, err = io.Copy(out, in)
	s.must(err)
	s.must(out.Close())
}

func (s *scenario) lastSegment(node string) string {
	segs, err := filepath.Glob(filepath.Join(s.dirs[node], "member", "wal", "*.wal"))
	s.must(err)
	slices.Sort(segs)
	return segs[len(segs)-1]
}

func (s *scenario) zeroWAL(args []string) {
	file := s.lastSegment(args[0])
	at := s.frames(file)
	k := len(at) / 2
	for at[k+1]-at[k] < 64 {
		k++
	}
	s.writeAt(file, at[k], make([]byte, at[k+1]-at[k]))
}

func (s *scenario) loseTail(args []string) {
	file := s.lastSegment(args[0])
	at := s.frames(file)
	from := at[len(at)-1-s.number(args, 1, 6)]
	s.writeAt(file, from, make([]byte, at[len(at)-1]-from))
}
