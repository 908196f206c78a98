package cli

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcd-medic/etcd-medic/cmd/etcd-medic/internal/render"
	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/release"
)

// version is set by the linker; the default is the module version or the commit.
var version = ""

// Version returns the version of this program for reports.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(len(s.Value), 12)]
		}
	}
	return info.Main.Version
}

// commit is set by the linker if the build information lacks it (releases are built from an exported tree).
var commit = ""

// Commit returns the commit that this program was built from, abbreviated to 12 digits, or "unknown".
func Commit() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return "unknown"
}

// aboutProgram is the output of `version`.
type aboutProgram struct {
	SchemaVersion int `json:"schemaVersion"`

	Name    string   `json:"name"`
	Version string   `json:"version"`
	Commit  string   `json:"commit"`
	Go      string   `json:"go"`
	OS      string   `json:"os"`
	Arch    string   `json:"arch"`
	Servers []string `json:"servers"` // etcd servers inside, oldest first
	Lacks   []string `json:"lacks"`   // minor versions whose server a full build contains and this one lacks
	Formats []string `json:"formats"` // oldest and newest supported etcd minor version
}

func newVersionCmd(s *Streams) *cobra.Command {
	o := &output{io: s}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version, the commit and the etcd servers inside",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			formats := release.Lines()
			first, last := formats[0], formats[len(formats)-1]
			about := aboutProgram{
				SchemaVersion: compare.SchemaVersion, Name: "etcd-medic", Version: Version(), Commit: Commit(),
				Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
				Lacks: append([]string{}, node.NotBuiltIn()...), Formats: []string{first, last},
			}
			for _, v := range node.BuiltIn() {
				about.Servers = append(about.Servers, v.String())
			}
			if o.format == render.JSON || o.format == render.JSONL {
				return json.NewEncoder(s.Out).Encode(about)
			}
			_, err := fmt.Fprintf(s.Out, "etcd-medic %s %s %s/%s\ncommit %s\netcd servers inside: %s\n%sreads files "+
				"of etcd %s to %s\n",
				about.Version, about.Go, about.OS, about.Arch, about.Commit, strings.Join(about.Servers, ", "),
				lacksText(about.Lacks), first, last)
			return err
		},
	}
	o.format = render.Table
	cmd.Flags().VarP(&formatFlag{f: &o.format}, "write-out", "w", "output format: table|json")
	return cmd
}

// lacksText says what a build without all servers cannot do, and how to get the others; "" for a full build.
func lacksText(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("not inside: etcd %s. Steps that run such a server need --etcd-binary, a package of a release, "+
		"or make build\n", strings.Join(lines, ", "))
}
