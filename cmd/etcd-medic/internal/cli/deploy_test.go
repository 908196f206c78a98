package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// container is what counts of a container in a manifest.
type container struct {
	Name          string
	Command, Args []string
	Env           []struct{ Name, Value string }
	LivenessProbe *struct {
		HTTPGet struct{ Path string } `yaml:"httpGet"`
	} `yaml:"livenessProbe"`
	SecurityContext *struct {
		ReadOnly *bool `yaml:"readOnlyRootFilesystem"`
	} `yaml:"securityContext"`
}

// containers reads all manifests in deploy.
func containers(t *testing.T) map[string][]container {
	t.Helper()
	out := map[string][]container{}
	files, err := filepath.Glob(filepath.Join(evidencetest.Root(t), "deploy", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for dec := yaml.NewDecoder(bytes.NewReader(b)); ; {
			var doc struct {
				Spec struct {
					Template struct {
						Spec struct{ Containers []container }
					}
				}
			}
			err := dec.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			name := filepath.Base(filepath.Dir(f)) + "/" + filepath.Base(f)
			out[name] = append(out[name], doc.Spec.Template.Spec.Containers...)
		}
	}
	return out
}

// TestShippedManifests: commands, flags and variables of the manifests exist, the command takes them, and containers
// write nowhere but into their volumes.
func TestShippedManifests(t *testing.T) {
	seen := map[string]bool{}
	for file, all := range containers(t) {
		for _, c := range all {
			args := append(append([]string{}, c.Command...), c.Args...)
			if len(args) < 2 || args[0] != "etcd-medic" {
				continue
			}
			env := map[string]string{}
			for _, e := range c.Env {
				env[e.Name] = e.Value
			}
			var errs bytes.Buffer
			s := &Streams{Out: io.Discard, Err: &errs, Getenv: func(n string) string { return env[n] }}
			cmd, rest, err := newRoot(s).Find(expandIndex(args[1:]))
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			seen[cmd.Name()] = true
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if err := setFromEnv(cmd, s); err != nil || errs.Len() > 0 {
				t.Errorf("%s: %v %s", file, err, errs.String())
			}
			for name := range env {
				flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "ETCD_MEDIC_"), "_", "-"))
				if f := cmd.Flags().Lookup(flag); f == nil || !f.Changed {
					t.Errorf("%s: %s sets no flag of %s", file, name, cmd.Name())
				}
			}
			if c.SecurityContext == nil || c.SecurityContext.ReadOnly == nil || !*c.SecurityContext.ReadOnly {
				t.Errorf("%s: %s may write to its root", file, c.Name)
			}
			if cmd.Name() == "watch" && (c.LivenessProbe == nil || c.LivenessProbe.HTTPGet.Path != "/healthz") {
				t.Errorf("%s: %s has no liveness probe", file, c.Name)
			}
		}
	}
	for _, name := range []string{"collect", "watch", "verify"} {
		if !seen[name] {
			t.Errorf("no manifest runs %s", name)
		}
	}
}

// expandIndex does what Kubernetes does with the variable of an Indexed Job.
func expandIndex(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.ReplaceAll(a, "$(JOB_COMPLETION_INDEX)", "3")
	}
	return out
}
