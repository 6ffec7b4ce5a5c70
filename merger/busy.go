package merger

import "time"

// Busy is the step that the loop performs at the moment.
type Busy struct {
	Step  string
	Since time.Time
	// Rows are those an index rebuild has read so far: they grow while it moves.
	Rows int64
}

// Busy returns the step of a commit that is under way; nil between steps and while
// Kafka is asked, which may take as long as Kafka is away. A step whose Since and
// Rows stay the same for long is stuck: the storage does not answer, or the
// program has a deadlock. It may be called from any goroutine.
func (a *Applier) Busy() *Busy {
	b := a.busy.Load()
	if b == nil {
		return nil
	}
	now := *b
	now.Rows = a.view.done.Load()
	return &now
}

func (a *Applier) begins(step string, at time.Time) {
	if step != "resolve" {
		a.busy.Store(&Busy{Step: step, Since: at})
	}
}

func (a *Applier) ends() { a.busy.Store(nil) }
