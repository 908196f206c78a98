// Package find searches a host, or a copy of its files, for the flags and certificates with which etcd runs there. It
// knows systemd units, static pods (kubeadm, OpenShift), k3s, RKE2, Talos and Docker. It only reads, and starts
// nothing. Its result is shown before it is used.
package find

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Member is an etcd server that the host is set up to run.
type Member struct {
	// Kind is the usual name of the setup; File is the file that describes it.
	Kind, File string
	// DataDir and WALDir are paths on the host. Endpoint is a client URL of the member itself.
	DataDir, WALDir, Endpoint string
	// CACert, Cert and Key are files on the host with which a client can connect.
	CACert, Cert, Key string
	Name              string
}

// maxFile bounds what is read of one file, in bytes.
const maxFile = 1 << 20

// host is the root of the host's files.
type host struct{ fs fs.FS }

// Members lists the servers that are set up below a root, such as os.DirFS("/"). It skips files that cannot be read.
func Members(root fs.FS) []Member {
	h := host{root}
	var out []Member
	for _, find := range []func() []Member{h.pods, h.k3s, h.talos, h.units, h.docker} {
		for _, m := range find() {
			known := func(o Member) bool { return o.DataDir == m.DataDir }
			if m.DataDir != "" && !slices.ContainsFunc(out, known) {
				out = append(out, m)
			}
		}
	}
	return out
}

// read returns a file, nil if it is missing or unusable.
func (h host) read(file string) []byte {
	name := strings.TrimPrefix(path.Clean(file), "/")
	if st, err := fs.Stat(h.fs, name); err != nil || !st.Mode().IsRegular() {
		return nil // opening a pipe would wait
	}
	f, err := h.fs.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxFile {
		return nil
	}
	b := make([]byte, st.Size())
	for n := 0; n < len(b); {
		m, err := f.Read(b[n:])
		if n += m; err != nil {
			return b[:n]
		}
	}
	return b
}

func (h host) exists(file string) bool {
	if file == "" {
		return false
	}
	_, err := fs.Stat(h.fs, strings.TrimPrefix(path.Clean(file), "/"))
	return err == nil
}

// first returns the first of several files that exists.
func (h host) first(files ...string) string {
	for _, f := range files {
		if h.exists(f) {
			return f
		}
	}
	return ""
}

func (h host) glob(pattern string) []string {
	names, err := fs.Glob(h.fs, strings.TrimPrefix(pattern, "/"))
	if err != nil {
		return nil
	}
	for i := range names {
		names[i] = "/" + names[i]
	}
	return names
}

// settings are etcd's flags by name, from a command line, the environment or a configuration file.
type settings map[string]string

// args reads --name=value and --name value. Words before the first flag are the program.
func (s settings) args(words []string) {
	for i := 0; i < len(words); i++ {
		if !strings.HasPrefix(words[i], "-") {
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(words[i], "-"), "=")
		if !given && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			i++
			value = words[i]
		}
		if !given && value == "" {
			value = "true"
		}
		s[name] = value
	}
}

// environ reads ETCD_DATA_DIR=… as --data-dir. A flag takes precedence.
func (s settings) environ(env []string) {
	for _, e := range env {
		name, value, ok := strings.Cut(e, "=")
		flag, isEtcd := strings.CutPrefix(name, "ETCD_")
		if !ok || !isEtcd {
			continue
		}
		flag = strings.ToLower(strings.ReplaceAll(flag, "_", "-"))
		if _, given := s[flag]; !given {
			s[flag] = value
		}
	}
}

// member makes a member from settings. at maps paths of the server to paths of the host.
func (h host) member(kind, file string, s settings, at func(string) string) Member {
	if c := s["config-file"]; c != "" { // etcd then ignores all other settings
		s = settings{}
		s.yaml(h.read(at(c)))
	}
	m := Member{Kind: kind, File: file, Name: s["name"], DataDir: at(s["data-dir"]), WALDir: at(s["wal-dir"]),
		Endpoint: own(s["listen-client-urls"], s["advertise-client-urls"])}
	if m.DataDir == "" && s["name"] != "" {
		m.DataDir = at(s["name"] + ".etcd") // in the server's working folder
	}
	if strings.HasPrefix(m.Endpoint, "https:") {
		m.CACert, m.Cert, m.Key = at(s["trusted-ca-file"]), at(s["cert-file"]), at(s["key-file"])
	}
	return m
}

// own picks the URL at which a member is reached from its own host: loopback, else the first with an address.
func own(lists ...string) string {
	var all []string
	for _, l := range lists {
		for _, u := range strings.Split(l, ",") {
			if u = strings.TrimSpace(u); strings.HasPrefix(u, "http://") || strings.HasPrefix(u, "https://") {
				all = append(all, u)
			}
		}
	}
	for _, u := range all {
		if strings.Contains(u, "//127.") || strings.Contains(u, "//localhost") || strings.Contains(u, "//[::1]") {
			return u
		}
	}
	for _, u := range all {
		if !strings.Contains(u, "//0.0.0.0") && !strings.Contains(u, "//[::]") {
			return u
		}
	}
	for _, u := range all {
		return strings.NewReplacer("//0.0.0.0", "//127.0.0.1", "//[::]", "//[::1]").Replace(u)
	}
	return ""
}

func same(p string) string { return p }
