package find_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/collect/find"
)

func files(pairs ...string) fstest.MapFS {
	out := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return out
}

const kubeadm = `apiVersion: v1
kind: Pod
metadata: {name: etcd, namespace: kube-system, labels: {component: etcd, tier: control-plane}}
spec:
  containers:
  - name: etcd
    command: [etcd, --advertise-client-urls=https://172.18.0.2:2379, --cert-file=/etc/kubernetes/pki/etcd/server.crt, --data-dir=/var/lib/etcd,
      "--key-file=/etc/kubernetes/pki/etcd/server.key", "--listen-client-urls=https://127.0.0.1:2379,https://172.18.0.2:2379",
      --name=kind-control-plane, --trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt]
    volumeMounts:
    - {mountPath: /var/lib/etcd, name: etcd-data}
    - {mountPath: /etc/kubernetes/pki/etcd, name: etcd-certs}
  volumes:
  - {name: etcd-certs, hostPath: {path: /etc/kubernetes/pki/etcd, type: DirectoryOrCreate}}
  - {name: etcd-data, hostPath: {path: /mnt/disk/etcd, type: DirectoryOrCreate}}
`

const openshift = `apiVersion: v1
kind: Pod
metadata: {name: etcd, labels: {app: etcd, etcd: "true"}}
spec:
  containers:
  - name: etcdctl
    command: [/bin/bash]
  - name: etcd
    command:
    - /bin/sh
    - -c
    - |
      exec etcd \
        --logger=zap \
        --cert-file=/etc/kubernetes/static-pod-certs/secrets/etcd-all-certs/etcd-serving-m1.crt \
        --data-dir=/var/lib/etcd \
        --listen-client-urls=https://0.0.0.0:2379,unixs://10.0.0.1:0 || mv x y
    volumeMounts:
    - {mountPath: /var/lib/etcd/, name: data-dir}
  volumes:
  - {name: data-dir, hostPath: {path: /var/lib/etcd}}
`

const k3s = `name: m1-1a2b
data-dir: /var/lib/rancher/k3s/server/db/etcd
listen-client-urls: https://127.0.0.1:2379,https://10.0.0.1:2379
client-transport-security:
  cert-file: /var/lib/rancher/k3s/server/tls/etcd/server-client.crt
  key-file: /var/lib/rancher/k3s/server/tls/etcd/server-client.key
  trusted-ca-file: /var/lib/rancher/k3s/server/tls/etcd/server-ca.crt
`

// rke2Pod is how RKE2 starts etcd: with the configuration that lies next to the data.
const rke2Pod = `apiVersion: v1
kind: Pod
metadata: {name: etcd, labels: {component: etcd, tier: control-plane}}
spec:
  containers:
  - name: etcd
    command: [etcd]
    args: [--config-file=/var/lib/rancher/rke2/server/db/etcd/config]
    volumeMounts:
    - {mountPath: /var/lib/rancher/rke2/server/db/etcd, name: dir0}
  volumes:
  - {name: dir0, hostPath: {path: /var/lib/rancher/rke2/server/db/etcd}}
`

// TestFolders: what the products write on a host, as folders, with what is found there. shown.txt of each is what collect
// shows of it.
func TestFolders(t *testing.T) {
	layouts, err := filepath.Glob("testdata/*/host")
	if err != nil || len(layouts) < 9 {
		t.Fatalf("%v, %v", layouts, err)
	}
	for _, dir := range layouts {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "want.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want []find.Member
			if err := json.Unmarshal(b, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, find.Members(os.DirFS(dir))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLayouts: what is rarer, in a few lines each.
func TestLayouts(t *testing.T) {
	cases := map[string]struct {
		files fstest.MapFS
		want  []find.Member
	}{
		"nothing": {files(), nil},
		"kubeadm": {files("etc/kubernetes/manifests/etcd.yaml", kubeadm, "etc/kubernetes/manifests/kube-apiserver.yaml",
			"kind: Pod\nspec: {containers: [{name: kube-apiserver}]}",
			"etc/kubernetes/pki/etcd/healthcheck-client.crt", "", "etc/kubernetes/pki/etcd/healthcheck-client.key", ""),
			[]find.Member{{
				Kind: "kubeadm static pod", File: "/etc/kubernetes/manifests/etcd.yaml", DataDir: "/mnt/disk/etcd",
				Endpoint: "https://127.0.0.1:2379", Name: "kind-control-plane",
				CACert: "/etc/kubernetes/pki/etcd/ca.crt", Cert: "/etc/kubernetes/pki/etcd/healthcheck-client.crt",
				Key: "/etc/kubernetes/pki/etcd/healthcheck-client.key"}}},
		"OpenShift": {files("etc/kubernetes/manifests/etcd-pod.yaml", openshift,
			"etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-m1.crt", "",
			"etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-m1.key", "",
			"etc/kubernetes/static-pod-resources/etcd-certs/configmaps/etcd-all-bundles/server-ca-bundle.crt", ""),
			[]find.Member{{
				Kind: "OpenShift static pod", File: "/etc/kubernetes/manifests/etcd-pod.yaml", DataDir: "/var/lib/etcd",
				Endpoint: "https://127.0.0.1:2379",
				CACert:   "/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/etcd-all-bundles/server-ca-bundle.crt",
				Cert:     "/etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-m1.crt",
				Key:      "/etc/kubernetes/static-pod-resources/etcd-certs/secrets/etcd-all-certs/etcd-peer-m1.key"}}},
		"k3s": {files("var/lib/rancher/k3s/server/db/etcd/config", k3s,
			"var/lib/rancher/k3s/server/tls/etcd/client.crt", ""), []find.Member{{
			Kind: "k3s", File: "/var/lib/rancher/k3s/server/db/etcd/config",
			DataDir: "/var/lib/rancher/k3s/server/db/etcd", Endpoint: "https://127.0.0.1:2379", Name: "m1-1a2b",
			CACert: "/var/lib/rancher/k3s/server/tls/etcd/server-ca.crt",
			Cert:   "/var/lib/rancher/k3s/server/tls/etcd/client.crt",
			Key:    "/var/lib/rancher/k3s/server/tls/etcd/client.key"}}},
		"RKE2": {files("var/lib/rancher/rke2/server/db/etcd/config",
			strings.ReplaceAll(k3s, "/k3s/", "/rke2/"), "var/lib/rancher/rke2/server/tls/etcd/client.crt", "",
			"var/lib/rancher/rke2/agent/pod-manifests/etcd.yaml", rke2Pod), []find.Member{{
			Kind: "RKE2", File: "/var/lib/rancher/rke2/server/db/etcd/config",
			DataDir: "/var/lib/rancher/rke2/server/db/etcd", Endpoint: "https://127.0.0.1:2379", Name: "m1-1a2b",
			CACert: "/var/lib/rancher/rke2/server/tls/etcd/server-ca.crt",
			Cert:   "/var/lib/rancher/rke2/server/tls/etcd/client.crt",
			Key:    "/var/lib/rancher/rke2/server/tls/etcd/client.key"}}},
		"k3s with another data dir": {files("etc/rancher/k3s/config.yaml", "cluster-init: true\ndata-dir: /srv/k3s\n",
			"srv/k3s/server/db/etcd/config", strings.ReplaceAll(k3s, "/var/lib/rancher/k3s/", "/srv/k3s/"),
			"srv/k3s/server/tls/etcd/client.crt", ""), []find.Member{{
			Kind: "k3s", File: "/srv/k3s/server/db/etcd/config", DataDir: "/srv/k3s/server/db/etcd",
			Endpoint: "https://127.0.0.1:2379", Name: "m1-1a2b", CACert: "/srv/k3s/server/tls/etcd/server-ca.crt",
			Cert: "/srv/k3s/server/tls/etcd/client.crt", Key: "/srv/k3s/server/tls/etcd/client.key"}}},
		"Talos": {files("system/secrets/etcd/ca.crt", "", "system/secrets/etcd/admin.crt", "",
			"system/secrets/etcd/admin.key", "", "var/lib/etcd/member/snap/db", ""), []find.Member{{
			Kind: "Talos", File: "/system/secrets/etcd/", DataDir: "/var/lib/etcd", Endpoint: "https://127.0.0.1:2379",
			CACert: "/system/secrets/etcd/ca.crt", Cert: "/system/secrets/etcd/admin.crt",
			Key: "/system/secrets/etcd/admin.key"}}},
		"systemd": {files("etc/systemd/system/etcd.service",
			"[Service]\nEnvironmentFile=-/etc/etcd.env\nExecStart=/usr/bin/etcd --name \"n 1\" \\\n  "+
				"--data-dir=${DIR}/data --wal-dir /wal\n",
			"etc/etcd.env", "# x\nDIR=/srv\nETCD_LISTEN_CLIENT_URLS=\"http://0.0.0.0:2379\"\n"), []find.Member{{
			Kind: "systemd unit", File: "/etc/systemd/system/etcd.service", DataDir: "/srv/data", WALDir: "/wal",
			Endpoint: "http://127.0.0.1:2379", Name: "n 1"}}},
		"systemd with a configuration file": {files("usr/lib/systemd/system/etcd.service",
			"[Service]\nExecStart=/usr/bin/etcd\n", "etc/systemd/system/etcd.service.d/10.conf",
			"[Service]\nExecStart=\nExecStart=/opt/etcd --config-file=/etc/etcd.yml\n", "etc/etcd.yml",
			"data-dir: /data\nlisten-client-urls: http://10.0.0.5:2379\n"), []find.Member{{
			Kind: "systemd unit", File: "/usr/lib/systemd/system/etcd.service", DataDir: "/data",
			Endpoint: "http://10.0.0.5:2379"}}},
		"systemd of Debian": {files("lib/systemd/system/etcd.service",
			"[Service]\nEnvironment=DAEMON_ARGS=\nEnvironment=ETCD_NAME=%H\n"+
				"Environment=ETCD_DATA_DIR=/var/lib/etcd/default\nEnvironmentFile=-/etc/default/%p\n"+
				"ExecStart=/usr/bin/etcd $DAEMON_ARGS\n",
			"etc/default/etcd", "ETCD_DATA_DIR=\"/mnt/old\"\nETCD_DATA_DIR=\"/mnt/fast/etcd\"\n"+
				"DAEMON_ARGS=\"--wal-dir /wal --listen-client-urls=http://10.0.0.7:2379\"\n",
			"etc/hostname", "db7\n"), []find.Member{{
			Kind: "systemd unit", File: "/lib/systemd/system/etcd.service", DataDir: "/mnt/fast/etcd", WALDir: "/wal",
			Endpoint: "http://10.0.0.7:2379", Name: "db7"}}},
		"systemd of RHEL": {files("usr/lib/systemd/system/etcd.service",
			"[Service]\nWorkingDirectory=/var/lib/etcd/\nEnvironmentFile=-/etc/etcd/etcd.conf\n"+
				`ExecStart=/bin/bash -c "GOMAXPROCS=$(nproc) /usr/bin/etcd --name=\"${ETCD_NAME}\" `+
				`--data-dir=\"${ETCD_DATA_DIR}\" --listen-client-urls=\"${ETCD_LISTEN_CLIENT_URLS}\""`+"\n",
			"etc/etcd/etcd.conf", "ETCD_NAME=m1\nETCD_DATA_DIR=\"/data/m1.etcd\"\n"+
				"ETCD_LISTEN_CLIENT_URLS=\"https://10.0.0.8:2379\"\nETCD_CERT_FILE=/c.crt\nETCD_KEY_FILE=/c.key\n"),
			[]find.Member{{Kind: "systemd unit", File: "/usr/lib/systemd/system/etcd.service", DataDir: "/data/m1.etcd",
				Endpoint: "https://10.0.0.8:2379", Name: "m1", Cert: "/c.crt", Key: "/c.key"}}},
		"systemd with flags in a script": {files("etc/systemd/system/etcd.service",
			"[Service]\nEnvironment=D=/srv W=/fast\nExecStart=/bin/sh -c 'exec etcd --data-dir $D --wal-dir=$W'\n"),
			[]find.Member{{Kind: "systemd unit", File: "/etc/systemd/system/etcd.service", DataDir: "/srv",
				WALDir: "/fast", Endpoint: "http://127.0.0.1:2379"}}},
		"systemd without a data dir": {files("etc/systemd/system/etcd.service",
			"[Service]\nWorkingDirectory=/srv\nEnvironment=ETCD_NAME=wrong ETCD_WAL_DIR=/wrong\nEnvironment=\n"+
				"Environment=ETCD_NAME=a ETCD_NAME=m2\nExecStart=/usr/bin/etcd\n"), []find.Member{{
			Kind: "systemd unit", File: "/etc/systemd/system/etcd.service", DataDir: "/srv/m2.etcd",
			Endpoint: "http://127.0.0.1:2379", Name: "m2"}}},
		"static pod with a script": {files("etc/kubernetes/manifests/etcd.yaml", "kind: Pod\nspec:\n  containers:\n"+
			"  - name: etcd\n    command: [sh, -c, exec etcd --data-dir /data/m1 --listen-client-urls=http://127.0.0.1:2379]\n"+
			"    volumeMounts: [{mountPath: /data, name: d}]\n  volumes: [{name: d, hostPath: {path: /mnt/d}}]\n"),
			[]find.Member{{Kind: "static pod", File: "/etc/kubernetes/manifests/etcd.yaml", DataDir: "/mnt/d/m1",
				Endpoint: "http://127.0.0.1:2379"}}},
		"Docker in its working folder": {files("var/lib/docker/containers/abc/config.v2.json",
			`{"Name":"/etcd1","Path":"etcd","Args":["--name=m3"],"Config":{"WorkingDir":"/work","Env":[]},
			"MountPoints":{"/work":{"Source":"/srv/work","Destination":"/work"}}}`), []find.Member{{
			Kind: "Docker container etcd1", File: "/var/lib/docker/containers/abc/config.v2.json",
			DataDir: "/srv/work/m3.etcd", Name: "m3"}}},
		"Docker": {files("var/lib/docker/containers/abc/config.v2.json",
			`{"Name":"/etcd1","Path":"/usr/local/bin/etcd","Args":["--data-dir","/etcd-data"],
			"Config":{"Env":["ETCD_LISTEN_CLIENT_URLS=http://0.0.0.0:2379"]},"MountPoints":{"/etcd-data":{"Source":"/var/lib/docker/volumes/v/_data","Destination":"/etcd-data"}}}`,
			"var/lib/docker/containers/def/config.v2.json", `{"Path":"nginx"}`), []find.Member{{
			Kind: "Docker container etcd1", File: "/var/lib/docker/containers/abc/config.v2.json",
			DataDir: "/var/lib/docker/volumes/v/_data", Endpoint: "http://127.0.0.1:2379"}}},
		"nonsense": {files("etc/kubernetes/manifests/etcd.yaml", "{{{", "etc/systemd/system/etcd.service", "ExecStart",
			"var/lib/docker/containers/a/config.v2.json", "[",
			"var/lib/rancher/k3s/server/db/etcd/config", ": :"),
			[]find.Member{{Kind: "k3s", File: "/var/lib/rancher/k3s/server/db/etcd/config",
				DataDir: "/var/lib/rancher/k3s/server/db/etcd", Endpoint: "https://127.0.0.1:2379"}}},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, find.Members(c.files)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
