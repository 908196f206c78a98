package plan

import (
	"slices"
	"strings"
	"testing"
)

// TestFillNote: what is known stands in the note, unless quotes there would change what it means.
func TestFillNote(t *testing.T) {
	n := note(`set ETCD_INITIAL_CLUSTER_STATE=existing and ETCD_INITIAL_CLUSTER="INITIAL_CLUSTER", mv -T DATA_DIR/member`)
	for value, want := range map[string]string{
		"a=http://10.0.0.1:2380,b=http://[::1]:2380": `set ETCD_INITIAL_CLUSTER_STATE=existing and ` +
			`ETCD_INITIAL_CLUSTER="a=http://10.0.0.1:2380,b=http://[::1]:2380", mv -T /data/a/member`,
		"$(reboot)=http://10.0.0.1:2380": `set ETCD_INITIAL_CLUSTER_STATE=existing and ` +
			`ETCD_INITIAL_CLUSTER="INITIAL_CLUSTER", mv -T /data/a/member`,
	} {
		if got := n.FillNote(map[string]string{"INITIAL_CLUSTER": value, "DATA_DIR": "/data/a"}).Note; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", value, got, want)
		}
	}
}

// TestMendByHandNamesEveryRepair: the commands for people are those that were tried.
func TestMendByHandNamesEveryRepair(t *testing.T) {
	x := Mend{Member: "node1", Repairs: []string{MendLog, MendDB}, With: []string{"node2"}, Base: "old.db", Works: true}
	var got []string
	for _, c := range x.commands(&Member{Name: "node1"}, false) {
		got = append(got, c.Run)
	}
	want := []string{
		"etcd-medic repair wal DATA_DIR -o DATA_DIR.mended-wal --with COPY_OF_NODE2",
		"etcd-medic repair db --rebuild DATA_DIR.mended-wal --base COPY_OF_OLD_DB -o DATA_DIR.mended --with " +
			"COPY_OF_NODE2",
		"etcd-medic inspect DATA_DIR.mended",
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	apart := x.commands(&Member{Name: "node1"}, true)
	if want := "etcd-medic repair wal DATA_DIR --wal-dir WAL_DIR -o DATA_DIR.mended-wal --with " +
		"COPY_OF_NODE2"; apart[0].Run != want || apart[1].Run != got[1] {
		t.Errorf("with the log outside of the data dir: %s; want %s", apart[0].Run, want)
	}
}
