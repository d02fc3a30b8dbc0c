"""The explorer: linked views of runs in a browser or a notebook cell, made with Panel (extra `explore`).

selection      what is looked at: one value, all of it in the address of the page
view           what a view is: a body, and what it does when the selection changes
app            Explorer: selection, runs, jobs and views in one layout; shows itself in a notebook
plot           a plotly figure on the page: clicks, selections, a point to drag; drawn by plotly.py's own plotly.js
root           the outermost layout, changed by one thread at a time
page           the page around the views: address and back button, keys, light and dark
frame          what every view has around it
activity       what is being computed, with progress and a button that cancels
guard          who may talk to the server
header         pickers of run, round and view above the views
workspace      what all pages share: open runs, jobs, growth
style          one style sheet for page and notebook
early_head     the head of the page, sent before the page is made
server         the explorer at a local address: token, Host and Origin checked, no request to another machine
notebook       the explorer in a notebook cell
open_runs      the runs: opened when they are looked at, followed while they grow
run_rows       settings and last numbers of runs, and what differs; run_table shows them
series, lines  numbers over rounds, by group, with differences on the same cohorts; line_figure draws them
thinned        curves of many points with fewer of them
drift_figures  distances of clients, factors of the averaged model's loss, parts of the step
diagnosed      the diagnosis as a job, and the views that show its answers
on_demand      a button that computes an analysis, says its cost and shows its result; latest: short work in a thread
html_table     escaped tables and lines
views/         one view a file
"""
