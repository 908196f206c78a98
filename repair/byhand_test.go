package repair

import "testing"

// TestFillNote: what is known stands in the note, unless quotes there would change what it means.
func TestFillNote(t *testing.T) {
	n := note(`set ETCD_INITIAL_CLUSTER_STATE=existing and ETCD_INITIAL_CLUSTER="INITIAL_CLUSTER", mv -T DATA_DIR/member`)
	for value, want := range map[string]string{
		"a=http://10.0.0.1:2380,b=http://[::1]:2380": `set ETCD_INITIAL_CLUSTER_STATE=existing and ` +
			`ETCD_INITIAL_CLUSTER="a=http://10.0.0.1:2380,b=http://[::1]:2380", mv -T /data/a/member`,
		"$(reboot)=http://10.0.0.1:2380": `set ETCD_INITIAL_CLUSTER_STATE=existing and ` +
			`ETCD_INITIAL_CLUSTER="INITIAL_CLUSTER", mv -T /data/a/member`,
	} {
		if got := n.fillNote(map[string]string{"INITIAL_CLUSTER": value, "DATA_DIR": "/data/a"}).Note; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", value, got, want)
		}
	}
}
