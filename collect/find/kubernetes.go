package find

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/etcd-medic/etcd-medic/internal/yamldoc"
)

// pod is the part of a static pod's manifest that is used.
type pod struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name   string            `yaml:"name"`
		Labels map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Spec struct {
		Containers []struct {
			Name    string   `yaml:"name"`
			Command []string `yaml:"command"`
			Args    []string `yaml:"args"`
			Env     []struct {
				Name  string `yaml:"name"`
				Value string `yaml:"value"`
			} `yaml:"env"`
			VolumeMounts []struct {
				Name      string `yaml:"name"`
				MountPath string `yaml:"mountPath"`
			} `yaml:"volumeMounts"`
		} `yaml:"containers"`
		Volumes []struct {
			Name     string `yaml:"name"`
			HostPath struct {
				Path string `yaml:"path"`
			} `yaml:"hostPath"`
		} `yaml:"volumes"`
	} `yaml:"spec"`
}

// pods reads the static pods of the kubelet: kubeadm, kind, OpenShift.
func (h host) pods() (out []Member) {
	for _, file := range append(h.glob("/etc/kubernetes/manifests/*.yaml"),
		h.glob("/etc/kubernetes/manifests/*.yml")...) {
		var p pod
		b := h.read(file)
		if yamldoc.Check(b) != nil || yaml.Unmarshal(b, &p) != nil || p.Kind != "Pod" {
			continue
		}
		out = append(out, h.pod(file, &p)...)
	}
	return out
}

func (h host) pod(file string, p *pod) (out []Member) {
	paths := map[string]string{}
	for _, v := range p.Spec.Volumes {
		paths[v.Name] = v.HostPath.Path
	}
	for _, c := range p.Spec.Containers {
		if c.Name != "etcd" {
			continue
		}
		var mounts []mount
		for _, m := range c.VolumeMounts {
			if paths[m.Name] != "" {
				mounts = append(mounts, mount{m.MountPath, paths[m.Name]})
			}
		}
		var words, env []string
		line := slices.Concat(c.Command, c.Args)
		for i, w := range line {
			words = append(words, scriptWords(w, i > 0 && line[i-1] == "-c")...)
		}
		for _, e := range c.Env {
			env = append(env, e.Name+"="+e.Value)
		}
		s := settings{}
		s.args(words)
		s.environ(env)
		kind := "static pod"
		if p.Metadata.Labels["component"] == "etcd" {
			kind = "kubeadm static pod"
		}
		if p.Metadata.Labels["app"] == "etcd" || strings.HasSuffix(file, "etcd-pod.yaml") {
			kind = "OpenShift static pod"
		}
		m := h.member(kind, file, s, onHost(mounts))
		h.clientCert(&m, mounts)
		out = append(out, m)
	}
	return out
}

// scriptWords splits a shell script of a pod: OpenShift starts etcd from one, with line continuations. Other words of
// the command line stay what they are.
func scriptWords(w string, script bool) []string {
	if !strings.Contains(w, "\n") {
		if script {
			return words(w)
		}
		return []string{w}
	}
	var out []string
	for _, f := range strings.Fields(strings.ReplaceAll(w, "\\\n", " ")) {
		if strings.HasPrefix(f, "--") && !strings.Contains(f, "$") {
			out = append(out, strings.Trim(f, `"'`))
		}
	}
	return out
}

// clientCert replaces the server's certificate by one for clients, if there is one.
func (h host) clientCert(m *Member, mounts []mount) {
	dirs := []string{path.Dir(m.Cert)}
	if m.Kind == "OpenShift static pod" {
		h.openshift(m, mounts)
		return
	}
	for _, dir := range dirs {
		cert, key := path.Join(dir, "healthcheck-client.crt"), path.Join(dir, "healthcheck-client.key")
		if m.Cert != "" && h.exists(cert) && h.exists(key) {
			m.Cert, m.Key = cert, key
		}
	}
}

// openshift fills in what the script of the pod reads from variables: the data dir and the certificates of the node.
func (h host) openshift(m *Member, mounts []mount) {
	if m.DataDir == "" {
		m.DataDir = onHost(mounts)("/var/lib/etcd")
	}
	if m.Endpoint == "" {
		m.Endpoint = "https://127.0.0.1:2379"
	}
	certs := "/etc/kubernetes/static-pod-resources/etcd-certs"
	for _, c := range h.glob(certs + "/secrets/etcd-all-certs/etcd-peer-*.crt") {
		if key := strings.TrimSuffix(c, ".crt") + ".key"; h.exists(key) {
			m.Cert, m.Key = c, key
		}
	}
	if ca := h.first(certs+"/configmaps/etcd-all-bundles/server-ca-bundle.crt",
		certs+"/configmaps/etcd-serving-ca/ca-bundle.crt"); ca != "" {
		m.CACert = ca
	}
}

// k3s reads the configuration of the embedded etcd of k3s and RKE2, which is next to its data.
func (h host) k3s() (out []Member) {
	for _, d := range []struct{ kind, dir string }{{"k3s", h.rancherDir("k3s")}, {"RKE2", h.rancherDir("rke2")}} {
		file := d.dir + "/db/etcd/config"
		b := h.read(file)
		if b == nil {
			continue
		}
		s := settings{}
		s.yaml(b)
		m := h.member(d.kind, file, s, same)
		if m.DataDir == "" {
			m.DataDir = d.dir + "/db/etcd"
		}
		if m.Endpoint == "" {
			m.Endpoint = "https://127.0.0.1:2379"
		}
		tls := d.dir + "/tls/etcd/"
		if h.exists(tls + "client.crt") {
			m.CACert, m.Cert, m.Key = tls+"server-ca.crt", tls+"client.crt", tls+"client.key"
		}
		out = append(out, m)
	}
	return out
}

// rancherDir returns the folder of the server: below data-dir of its configuration, or the default.
func (h host) rancherDir(name string) string {
	var c struct {
		DataDir string `yaml:"data-dir"`
	}
	if err := yaml.Unmarshal(h.read("/etc/rancher/"+name+"/config.yaml"), &c); err != nil || !path.IsAbs(c.DataDir) {
		c.DataDir = "/var/lib/rancher/" + name
	}
	return path.Join(c.DataDir, "server")
}

// talos reads the files of Talos, which has no shell: a pod that mounts the host's files sees them.
func (h host) talos() []Member {
	const secrets = "/system/secrets/etcd/"
	if !h.exists(secrets) || !h.exists("/var/lib/etcd/member") {
		return nil
	}
	m := Member{Kind: "Talos", File: secrets, DataDir: "/var/lib/etcd", Endpoint: "https://127.0.0.1:2379"}
	for _, n := range []string{"admin", "server"} {
		if h.exists(secrets+n+".crt") && h.exists(secrets+n+".key") {
			m.CACert, m.Cert, m.Key = secrets+"ca.crt", secrets+n+".crt", secrets+n+".key"
			break
		}
	}
	return []Member{m}
}

// yaml reads etcd's configuration file.
func (s settings) yaml(b []byte) {
	var c struct {
		Name            string `yaml:"name"`
		DataDir         string `yaml:"data-dir"`
		WALDir          string `yaml:"wal-dir"`
		ListenClient    string `yaml:"listen-client-urls"`
		AdvertiseClient string `yaml:"advertise-client-urls"`
		Security        struct {
			Cert string `yaml:"cert-file"`
			Key  string `yaml:"key-file"`
			CA   string `yaml:"trusted-ca-file"`
		} `yaml:"client-transport-security"`
	}
	if yamldoc.Check(b) != nil || yaml.NewDecoder(bytes.NewReader(b)).Decode(&c) != nil {
		return
	}
	for k, v := range map[string]string{"name": c.Name, "data-dir": c.DataDir, "wal-dir": c.WALDir,
		"listen-client-urls":    c.ListenClient,
		"advertise-client-urls": c.AdvertiseClient, "cert-file": c.Security.Cert, "key-file": c.Security.Key,
		"trusted-ca-file": c.Security.CA} {
		if v != "" {
			s[k] = v
		}
	}
}

// mount says where a path of a container is on the host.
type mount struct{ inside, outside string }

// onHost maps a path of a container; the longest mount takes precedence.
func onHost(mounts []mount) func(string) string {
	return func(p string) string {
		if p == "" {
			return ""
		}
		p = path.Join("/", p)
		best, out := -1, p
		for _, m := range mounts {
			in := path.Clean(m.inside)
			if rest, ok := strings.CutPrefix(path.Clean(p), in); ok && len(in) > best &&
				(rest == "" || rest[0] == '/' || in == "/") {
				best, out = len(in), path.Join(m.outside, rest)
			}
		}
		return out
	}
}
