package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

func TestOutside(t *testing.T) {
	root := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	for _, d := range []string{at("node1", "member", "snap"), at("fast", "wal"), at("work"), at("new.partial"),
		at("shelf")} {
		ok(t, os.MkdirAll(d, 0o700))
	}
	ok(t, os.Symlink(at("fast", "wal"), at("node1", "member", "wal")))
	ok(t, os.Symlink(at("node1"), at("alias")))
	ok(t, os.Symlink(at("node1", "member"), at("work", "into")))
	for _, f := range []string{at("node1", "member", "snap", "db"), at("backup.db"), at("shelf", "a.db"),
		at("new.partial", "db")} {
		ok(t, os.WriteFile(f, []byte("x"), 0o600))
	}
	for _, c := range []struct {
		out, source string
		refused     bool
	}{
		{at("new"), at("node1"), false},
		{at("node1.new"), at("node1"), false},
		{at("new.db"), at("backup.db"), false}, // beside a file is not in it
		{at("node1", "new"), at("node1"), true},
		{at("node1", "member", "snap", "db2"), at("node1"), true},
		{at("node1", "a", "b", "new"), at("node1"), true}, // folders that would have to be made
		{at("alias", "new"), at("node1"), true},
		{at("node1", "new"), at("alias"), true},
		{at("work", "into", "new"), at("node1"), true},
		{at("work", "new"), at("node1"), false},
		{at("fast", "wal", "new"), at("node1"), true}, // the link's other end is the log
		{at("fast", "new"), at("node1"), false},
		{at("node1", "new"), at("node1", "member", "snap", "db"), true}, // a part stands for its data dir
		{at("node1", "new"), at("node1", "member", "wal"), true},
		{at("shelf", "new"), at("shelf"), true}, // a folder of backups
		{at("shelf", "new"), at("shelf", "a.db"), false},
		{at("new"), at("new.partial", "db"), true},      // what stands there is removed
		{at("backup.db", "new"), at("backup.db"), true}, // a file holds no folder
		{at("backup.db", "a", "b"), at("node1"), true},
		{at("new"), "https://10.0.0.1:2379", false},
		{at("new"), at("missing"), false},
		{"", at("node1"), false},
	} {
		err := datadir.Outside(c.out, evidence.Spec{Where: c.source})
		if (err != nil) != c.refused {
			t.Errorf("%s for the source %s: %v", strings.TrimPrefix(c.out, root), strings.TrimPrefix(c.source, root),
				err)
		}
	}
	if err := datadir.Outside(at("fast", "wal", "x"),
		evidence.Spec{Where: at("work"), WALDir: at("fast", "wal")}); err == nil {
		t.Error("a WAL folder of its own is not protected")
	}
	if err := datadir.Outside(at("backup.db", "new"), evidence.Spec{Where: at("node1")}); err == nil ||
		!strings.Contains(err.Error(), at("backup.db", "new")+" cannot be made") {
		t.Errorf("%v does not name the path", err)
	}
	t.Chdir(at("node1"))
	if err := datadir.Outside("new", evidence.Spec{Where: "."}); err == nil {
		t.Error("relative paths are not compared")
	}
}
