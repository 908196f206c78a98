package find

import (
	"path"
	"regexp"
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
			if m, ok := h.unit(file, h.unitText(unit)); ok {
				out = append(out, m)
			}
		}
	}
	return out
}

// unitText returns a unit with its drop-ins, "" if there is none.
func (h host) unitText(unit string) string {
	var files []string
	for _, d := range unitDirs {
		files = append(files, d+"/"+unit)
	}
	file := h.first(files...)
	if file == "" {
		return ""
	}
	b := h.read(file)
	for _, d := range unitDirs {
		for _, conf := range h.glob(d + "/" + unit + ".d/*.conf") {
			b = append(append(b, '\n'), h.read(conf)...)
		}
	}
	return string(b)
}

// unit reads what a unit starts.
func (h host) unit(file, text string) (Member, bool) {
	u := h.parseUnit(path.Base(file), text)
	if len(u.start) == 0 {
		return Member{}, false
	}
	s := settings{}
	s.args(u.command())
	for name, v := range u.env {
		s.environ([]string{name + "=" + v})
	}
	m := h.member("systemd unit", file, s, func(p string) string {
		if p != "" && !path.IsAbs(p) {
			return path.Join(u.workDir, p)
		}
		return p
	})
	if m.DataDir == "" && s["config-file"] == "" {
		if m.DataDir = path.Join(u.workDir, "default.etcd"); !h.exists(m.DataDir) {
			m.DataDir = h.first("/var/lib/etcd/default", "/var/lib/etcd")
		}
	}
	if m.Endpoint == "" {
		m.Endpoint = "http://127.0.0.1:2379"
	}
	return m, true
}

// unit is the part of a systemd unit that is used.
type unit struct {
	start   []string
	env     map[string]string
	workDir string
}

// parseUnit reads a unit with its drop-ins, as systemd.exec(5) and systemd.service(5) describe it: the last ExecStart
// counts, later variables override earlier ones, files of variables override both, and an empty value starts over.
func (h host) parseUnit(name, text string) unit {
	u := unit{env: map[string]string{}, workDir: "/"}
	bare := strings.TrimSuffix(name, ".service")
	prefix, _, _ := strings.Cut(bare, "@")
	specifiers := []string{"%%", "%", "%n", name, "%N", bare, "%p", prefix}
	if n := strings.TrimSpace(string(h.read("/etc/hostname"))); n != "" {
		specifiers = append(specifiers, "%H", n, "%l", n)
	}
	expand := strings.NewReplacer(specifiers...)
	var env, files []string
	for _, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(key, "#") || strings.HasPrefix(key, ";") {
			continue
		}
		switch value = expand.Replace(strings.TrimSpace(value)); strings.TrimSpace(key) {
		case "ExecStart":
			u.start = words(value)
		case "Environment":
			if env = append(env, words(value)...); value == "" {
				env = nil
			}
		case "WorkingDirectory":
			u.workDir = strings.TrimLeft(value, "-")
		case "EnvironmentFile":
			if files = append(files, strings.TrimLeft(value, "-")); value == "" {
				files = nil
			}
		}
	}
	for _, f := range files {
		env = append(env, h.envFile(f)...)
	}
	for _, e := range env {
		k, v, _ := strings.Cut(e, "=")
		u.env[k] = v
	}
	return u
}

// command returns the arguments of the program, or of the program in a shell's script: RHEL's unit has one.
func (u *unit) command() (out []string) {
	start := u.start
	if script := shellScript(start); script != "" {
		start = words(script)
	}
	for _, w := range start[min(1, len(start)):] {
		if name, ok := strings.CutPrefix(w, "$"); ok && isName(name) { // systemd splits such a word at blanks
			out = append(out, strings.Fields(u.env[name])...)
			continue
		}
		out = append(out, expandVars(w, u.env))
	}
	return out
}

// shellScript returns the script of a command line such as /bin/sh -c SCRIPT, "" for any other.
func shellScript(start []string) string {
	for i, w := range start {
		if w == "-c" && i > 0 && i+1 < len(start) && strings.HasSuffix(path.Base(start[0]), "sh") {
			return start[i+1]
		}
	}
	return ""
}

// isName reports whether a word can be the name of a variable.
func isName(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
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

// words splits like systemd and shells: at blanks outside of quotes. A backslash takes the next character as it is,
// except in single quotes.
func words(s string) (out []string) {
	var b strings.Builder
	var quote rune
	in, escaped := false, false
	for _, r := range s {
		switch {
		case escaped:
			b.WriteRune(r)
			in, escaped = true, false
		case r == '\\' && quote != '\'':
			escaped = true
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

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// expandVars replaces ${NAME} anywhere in a word, and $NAME at its end. A variable that is not set is empty.
func expandVars(w string, env map[string]string) string {
	w = variable.ReplaceAllStringFunc(w, func(v string) string { return env[v[2:len(v)-1]] })
	if before, name, ok := strings.Cut(w, "=$"); ok && isName(name) {
		return before + "=" + env[name]
	}
	return w
}
