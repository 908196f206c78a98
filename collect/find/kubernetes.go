package find

import (
	"bytes"
	"path"
	"regexp"
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
		h.clientCert(&m, mounts, line, env)
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
func (h host) clientCert(m *Member, mounts []mount, line, env []string) {
	if m.Kind == "OpenShift static pod" {
		h.openshift(m, mounts, line, env)
		return
	}
	dir := path.Dir(m.Cert)
	cert, key := path.Join(dir, "healthcheck-client.crt"), path.Join(dir, "healthcheck-client.key")
	if m.Cert != "" && h.exists(cert) && h.exists(key) {
		m.Cert, m.Key = cert, key
	}
}

// exported is how OpenShift's script names the member: after a variable of its node.
var exported = regexp.MustCompile(`\bETCD_NAME=\$\{(\w+)\}`)

// openshift fills in what the script of the pod reads from variables: name and data dir, and the certificates of the
// node, which are those of its etcdctl.
func (h host) openshift(m *Member, mounts []mount, line, env []string) {
	vars := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		vars[name] = value
	}
	if v := exported.FindStringSubmatch(strings.Join(line, "\n")); v != nil && m.Name == "" {
		m.Name = vars[v[1]]
	}
	at := onHost(mounts)
	if m.DataDir == "" {
		m.DataDir = at("/var/lib/etcd")
	}
	if m.Endpoint == "" {
		m.Endpoint = "https://127.0.0.1:2379"
	}
	certs := "/etc/kubernetes/static-pod-resources/etcd-certs"
	for _, c := range append(h.glob(certs+"/secrets/etcd-all-certs/etcd-peer-*.crt"), at(vars["ETCDCTL_CERT"])) {
		key := strings.TrimSuffix(c, ".crt") + ".key"
		if c != "" && h.exists(c) && h.exists(key) {
			m.Cert, m.Key = c, key
		}
	}
	if ca := h.first(at(vars["ETCDCTL_CACERT"]), certs+"/configmaps/etcd-all-bundles/server-ca-bundle.crt",
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

// rancherDir returns the folder of the server: below --data-dir of its unit or the variable of it, below data-dir of
// its configuration, or the default. Of the configuration's files, the last one counts.
func (h host) rancherDir(name string) string {
	dir := "/var/lib/rancher/" + name
	for _, file := range append([]string{"/etc/rancher/" + name + "/config.yaml"},
		h.glob("/etc/rancher/"+name+"/config.yaml.d/*.yaml")...) {
		var c struct {
			DataDir string `yaml:"data-dir"`
		}
		b := h.read(file)
		if yamldoc.Check(b) == nil && yaml.Unmarshal(b, &c) == nil && path.IsAbs(c.DataDir) {
			dir = c.DataDir
		}
	}
	for _, service := range []string{name + ".service", name + "-server.service"} {
		u := h.parseUnit(service, h.unitText(service))
		given := u.env[strings.ToUpper(name)+"_DATA_DIR"]
		for i, w := range u.start {
			flag, value, joined := strings.Cut(w, "=")
			switch {
			case flag != "--data-dir" && flag != "-d":
			case joined:
				given = value
			case i+1 < len(u.start):
				given = u.start[i+1]
			}
		}
		if path.IsAbs(given) {
			dir = given
		}
	}
	return path.Join(dir, "server")
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
