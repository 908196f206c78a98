package find_test

import (
	"testing"
	"testing/fstest"

	"github.com/etcd-medic/etcd-medic/collect/find"
)

// FuzzMembers reads any bytes as each file that says how a host's etcd is set up: never a panic, and what is found is
// one member for a layout at most.
func FuzzMembers(f *testing.F) {
	names := []string{"etc/kubernetes/manifests/etcd.yaml", "etc/kubernetes/manifests/etcd-pod.yaml",
		"var/lib/rancher/k3s/server/db/etcd/config", "etc/systemd/system/etcd.service",
		"etc/systemd/system/etcd.service.d/10.conf", "etc/etcd.env", "var/lib/docker/containers/abc/config.v2.json"}
	for _, s := range []string{kubeadm, openshift, k3s,
		"[Service]\nEnvironmentFile=-/etc/etcd.env\nExecStart=/usr/bin/etcd --name \"n 1\" \\\n " +
			"--data-dir=${DIR}/data\n",
		"DIR=/srv\nETCD_LISTEN_CLIENT_URLS=\"http://0.0.0.0:2379\"\n",
		`{"Name":"/etcd1","Path":"/usr/local/bin/etcd","Args":["--data-dir","/x"],"MountPoints":{"/x":{"Source":"/v"}}}`,
		"a: &a [*a]\n", "{{{"} {
		f.Add([]byte(s), []byte("x: 1"))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		root := fstest.MapFS{}
		for i, name := range names {
			root[name] = &fstest.MapFile{Data: [][]byte{a, b}[i%2]}
		}
		if found := find.Members(root); len(found) > len(names) {
			t.Errorf("%d members in %d files", len(found), len(names))
		}
	})
}
