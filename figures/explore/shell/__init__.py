"""The page around the views: application, selection, header, frame, server, notebook cell, guard, style sheets.

app            Explorer: selection, runs, jobs and views in one layout; shows itself in a notebook
selection      what is looked at: one value, all of it in the address of the page
view           what a view is: a body, what it does when the selection changes, and how it asks for numbers
plot, sliders  a plotly figure and sliders on the page, each with its script
page, root     address, back button, keys, light and dark; the outermost layout, changed by one thread at a time
server, guard  the explorer at a local address, and who may talk to it
workspace      what all pages share: open runs, jobs, growth
on_demand      a button that computes an analysis, says its cost and shows its result; latest: short work in a thread
"""
