"""The explorer: the stage of figures/page, live, in a browser or a notebook cell (extra `explore`).

server, guard             a page, one websocket, and who may talk to them
widget, notebook_cell     the same page in a notebook, by the connection to the kernel
session, ask, address     what a page asks and is told; what is selected, as text
answers                   one file per kind of ask
work                      open runs, jobs, processes; knows no page
"""
