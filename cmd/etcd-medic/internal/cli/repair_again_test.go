package cli

import (
	"context"
	"os"
	"testing"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// TestSameAgain: the command that continues a live repair has the hooks and the way in that were given, with paths that
// lead there from everywhere, and neither the password nor a consent.
func TestSameAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var got string
	var wals map[string]string
	var specs []evidence.Spec
	cmd := newRepairApplyCmd(&Streams{Getenv: func(string) string { return "" }},
		func(_ context.Context, o *repairApplyOptions) error {
			got, wals, specs = o.live.Flags.String(), o.live.WALDirs, o.specs
			return nil
		})
	cmd.SetArgs([]string{"plan.yaml", "node1=moved", "--mode", "live", "--endpoints", "10.0.0.1:2379,http://b:2",
		"--hook-stop", `ssh -- "$ETCD_MEDIC_MEMBER_NAME" halt`, "--hook-wipe", "./aside.sh", "--hook-start", "./start.sh",
		"--data-dir", "node1=/a", "--data-dir", "/b", "--user", "root:secret", "--backup", "b.db", "--quorum-wait", "1m",
		"--wal-dir", "node2=/w", "--wal-dir", "node1=wal", "--accept-lost-writes", "--no-member-snapshots", "-w", "json", "--work", "scratch"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `--endpoints http://10.0.0.1:2379,http://b:2 --backup ` + here + `/b.db --data-dir node1=/a --data-dir /b ` +
		`--hook-start ./start.sh --hook-stop 'ssh -- "$ETCD_MEDIC_MEMBER_NAME" halt' --hook-wipe ./aside.sh ` +
		`--no-member-snapshots=true --quorum-wait 1m0s --user root --wal-dir node2=/w --wal-dir node1=wal node1=moved`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if len(wals) != 1 || wals["node2"] != "/w" || len(specs) != 1 || specs[0].WALDir != "wal" {
		t.Errorf("WAL folders on hosts %v, of sources %+v", wals, specs)
	}
}
