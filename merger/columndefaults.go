package merger

import (
	"time"

	"applier/merger/defaults"
	"applier/merger/expr"
)

// readDefaults sets the columns' defaults to those at a time: functions such as
// current_timestamp() have one value a batch, also when it is planned again.
func (a *Applier) readDefaults(at time.Time) error {
	list, err := defaults.Values(a.table.Schema(), &expr.Env{Now: at})
	if err != nil {
		return err
	}
	if a.planner.deletedAt >= 0 {
		list[a.planner.deletedAt] = nil
	}
	a.planner.defaults = list
	return nil
}

// warnOfDefaults names the columns for which Java writers store another default.
func (a *Applier) warnOfDefaults() {
	for _, f := range a.table.Schema().Fields {
		if here, java, differ := defaults.Disputed(f); differ {
			a.set.Log.Warn("a column's default is read differently by Paimon's Java writers: ALTER COLUMN … SET DEFAULT stores it so that all agree",
				"column", f.Name, "text", *f.Default, "here", here, "java", java)
		}
	}
}
