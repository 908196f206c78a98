package cli

import "github.com/spf13/cobra"

const repairLong = `Repair never writes to what it reads: every result is a new path, and it is diagnosed again before it counts.

plan, rehearse, apply and status repair a whole cluster from the member that diagnose calls best. wal, db and meta change
one thing in a copy of one member, say what is lost by it, and refuse where it would make members differ.`

// newRepairCmd is the parent of everything that repairs; its sub-commands are listed here.
func newRepairCmd(s *Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "repair a cluster or one member, into new paths",
		Long:  repairLong,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(repairCmds(s)...)
	cmd.Hidden = !cmd.HasSubCommands()
	return cmd
}

func repairCmds(_ *Streams) []*cobra.Command {
	return nil
}
