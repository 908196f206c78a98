package cli

import (
	"context"
	"os"
	"testing"
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
	cmd := newRepairApplyCmd(&Streams{Getenv: func(string) string { return "" }},
		func(_ context.Context, o *repairApplyOptions) error {
			got = o.live.Flags.String()
			return nil
		})
	cmd.SetArgs([]string{"plan.yaml", "node1=moved", "--mode", "live", "--endpoints", "10.0.0.1:2379,http://b:2",
		"--hook-stop", `ssh -- "$ETCD_MEDIC_MEMBER_NAME" halt`, "--hook-wipe", "./aside.sh", "--hook-start", "./start.sh",
		"--data-dir", "node1=/a", "--data-dir", "/b", "--user", "root:secret", "--backup", "b.db", "--quorum-wait", "1m",
		"--accept-lost-writes", "--no-member-snapshots", "-w", "json", "--work", "scratch"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `--endpoints http://10.0.0.1:2379,http://b:2 --backup ` + here + `/b.db --data-dir node1=/a --data-dir /b ` +
		`--hook-start ./start.sh --hook-stop 'ssh -- "$ETCD_MEDIC_MEMBER_NAME" halt' --hook-wipe ./aside.sh ` +
		`--no-member-snapshots=true --quorum-wait 1m0s --user root node1=moved`
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
