package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCell_IsWonWhenThePeerTakesLongerThanItsGate(t *testing.T) {
	ok := func(s float64) *peerFigures { return &peerFigures{Engine: "x", MergeS: s, Verified: true} }
	void := &peerFigures{Engine: "x", MergeS: 1, problem: errors.New("rows differ")}
	for name, c := range map[string]struct {
		target     int64
		ours, peer []*peerFigures
		want       string
	}{
		"won":                       {million, []*peerFigures{ok(1)}, []*peerFigures{ok(1.1)}, ""},
		"a draw is lost":            {million, []*peerFigures{ok(1)}, []*peerFigures{ok(1)}, "not won"},
		"large table, by 9":         {10 * million, []*peerFigures{ok(1)}, []*peerFigures{ok(9)}, "the gate is 10 times"},
		"large table, by 11":        {10 * million, []*peerFigures{ok(1)}, []*peerFigures{ok(11)}, ""},
		"the median counts":         {million, []*peerFigures{ok(1), ok(50), ok(2)}, []*peerFigures{ok(3), ok(3), ok(0)}, ""},
		"wrong rows of the peer":    {million, []*peerFigures{ok(1)}, []*peerFigures{ok(100), void}, "void: rows differ"},
		"wrong rows of ours":        {million, []*peerFigures{void}, []*peerFigures{ok(100)}, "void: rows differ"},
		"a void repetition of ours": {million, []*peerFigures{ok(1), void, ok(1)}, []*peerFigures{ok(100)}, "void: rows differ"},
	} {
		t.Run(name, func(t *testing.T) {
			cell := &cell{workload: merge("peers", c.target, 1000, 2), ours: c.ours, theirs: map[string][]*peerFigures{"x": c.peer}}
			if err := cell.judge("x"); c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestPeers_AreChosenByName(t *testing.T) {
	ps, err := choosePeers("Delta, iceberg")
	require.NoError(t, err)
	require.Equal(t, []string{"delta", "iceberg"}, []string{ps[0].name, ps[1].name})
	_, err = choosePeers("duckdb")
	require.ErrorContains(t, err, `there is no peer "duckdb"`)

	chosen, kernels, err := choose(peerWorkloads(6), "peers-1M,peers-10M-100k")
	require.NoError(t, err)
	require.False(t, kernels)
	require.Len(t, chosen, 4)
}
