package find

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// unitDirs are the folders of systemd units; the first has precedence.
var unitDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system",
	"/usr/lib/systemd/system", "/lib/systemd/system"}

// units reads systemd units whose name starts with etcd, with their drop-ins.
func (h host) units() (out []Member) {
	var seen []string
	for _, dir := range unitDirs {
		for _, file := range h.glob(dir + "/etcd*.service") {
			unit := path.Base(file)
			if slices.Contains(seen, unit) {
				continue
			}
			seen = append(seen, unit)
			text := h.read(file)
			for _, d := range unitDirs {
				for _, conf := range h.glob(d + "/" + unit + ".d/*.conf") {
					text = append(append(text, '\n'), h.read(conf)...)
				}
			}
			if m, ok := h.unit(file, string(text)); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// unit reads what a unit starts. The last ExecStart counts, and later variables override earlier ones.
func (h host) unit(file, text string) (Member, bool) {
	var start, env []string
	workDir := "/"
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(key, "#") || strings.HasPrefix(key, ";") {
			continue
		}
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "ExecStart":
			start = words(value)
		case "Environment":
			env = append(words(value), env...)
		case "WorkingDirectory":
			workDir = strings.TrimLeft(value, "-")
		case "EnvironmentFile":
			env = append(env, h.envFile(strings.TrimLeft(value, "-"))...)
		}
	}
	if len(start) == 0 {
		return Member{}, false
	}
	byName := map[string]string{}
	for _, e := range slices.Backward(env) {
		k, v, _ := strings.Cut(e, "=")
		byName[k] = v
	}
	for i, w := range start {
		start[i] = expandVars(w, byName)
	}
	s := settings{}
	s.args(start[1:])
	s.environ(env)
	m := h.member("systemd unit", file, s, func(p string) string {
		if p != "" && !path.IsAbs(p) {
			return path.Join(workDir, p)
		}
		return p
	})
	if m.DataDir == "" && s["config-file"] == "" {
		if m.DataDir = path.Join(workDir, "default.etcd"); !h.exists(m.DataDir) {
			m.DataDir = h.first("/var/lib/etcd/default", "/var/lib/etcd")
		}
	}
	if m.Endpoint == "" {
		m.Endpoint = "http://127.0.0.1:2379"
	}
	return m, true
}

// envFile reads NAME=VALUE lines.
func (h host) envFile(file string) (out []string) {
	for _, line := range strings.Split(string(h.read(file)), "\n") {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if k, v, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			out = append(out, k+"="+strings.Trim(v, `"'`))
		}
	}
	return out
}

// words splits like systemd: at blanks outside of quotes.
func words(s string) (out []string) {
	var b strings.Builder
	var quote rune
	in := false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, in = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if in {
				out = append(out, b.String())
				b.Reset()
			}
			in = false
		default:
			b.WriteRune(r)
			in = true
		}
	}
	if in {
		out = append(out, b.String())
	}
	return out
}

// expandVars replaces ${NAME} anywhere in a word, and $NAME at its end.
func expandVars(w string, env map[string]string) string {
	for name, v := range env {
		w = strings.ReplaceAll(w, "${"+name+"}", v)
		if w == "$"+name || strings.HasSuffix(w, "=$"+name) {
			w = strings.TrimSuffix(w, "$"+name) + v
		}
	}
	return w
}

// docker reads the configuration of containers.
func (h host) docker() (out []Member) {
	for _, file := range h.glob("/var/lib/docker/containers/*/config.v2.json") {
		var c struct {
			Name   string
			Path   string
			Args   []string
			Config struct {
				Image      string
				Env        []string
				WorkingDir string
			}
			MountPoints map[string]struct{ Source, Destination string }
		}
		if err := json.Unmarshal(h.read(file), &c); err != nil || !runsEtcd(c.Path, c.Args) {
			continue
		}
		var mounts []mount
		for _, m := range c.MountPoints {
			mounts = append(mounts, mount{m.Destination, m.Source})
		}
		s := settings{}
		s.args(c.Args)
		s.environ(c.Config.Env)
		m := h.member("Docker container "+strings.TrimPrefix(c.Name, "/"), file, s, onHost(mounts))
		out = append(out, m)
	}
	return out
}

// runsEtcd reports whether a command line starts etcd.
func runsEtcd(program string, args []string) bool {
	if path.Base(program) == "etcd" {
		return true
	}
	for _, a := range args {
		if path.Base(a) == "etcd" {
			return true
		}
	}
	return false
}
