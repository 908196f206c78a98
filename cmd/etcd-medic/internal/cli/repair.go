package cli

import "github.com/spf13/cobra"

const repairLong = `Repair never writes to its sources: every result is a new path and is diagnosed again before it
counts. Data dirs are moved aside, never deleted.

plan, rehearse, apply, status and abort repair a whole cluster from the member that diagnose calls best:

  plan       read the sources and write a plan of what to do, and why
  rehearse   apply the plan to copies, in a sandbox without network access
  apply      apply the plan: write new data dirs, or repair the running cluster
  status     show the progress of a plan
  abort      show what was done, what was not, and how to go back

wal, db and meta change one thing in a copy of one member, report what is lost by it, and refuse if it would make
members differ.

Exit codes: 0 done, 1 could not read or write, 2 wrong usage, 5 refused: a precondition does not hold, 6 started and not
finished.`

const repairExample = `  etcd-medic repair plan node1=/copies/node1 node2=/copies/node2 node3=/copies/node3 -o plan.yaml
  etcd-medic repair rehearse plan.yaml
  etcd-medic repair apply plan.yaml --mode clone -o new-dirs
  etcd-medic repair status plan.yaml`

// newRepairCmd returns the parent of all repair commands.
func newRepairCmd(s *Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "repair",
		Short:   "repair a cluster or one member, into new paths",
		Long:    repairLong,
		Example: repairExample,
		Args:    rootArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(repairCmds(s)...)
	cmd.Hidden = !cmd.HasSubCommands()
	return cmd
}

func repairCmds(s *Streams) []*cobra.Command {
	return []*cobra.Command{
		newRepairPlanCmd(s, runRepairPlan),
		newRepairRehearseCmd(s, runRepairRehearse),
		newRepairWALCmd(s),
		newRepairDBCmd(s),
		newRepairMetaCmd(s),
		newRepairApplyCmd(s, runRepairApply),
		newRepairStatusCmd(s, runRepairStatus),
		newRepairAbortCmd(s, runRepairAbort),
	}
}
